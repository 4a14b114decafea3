// /dev/infiniband/rdma_cm as one process has it open, without its descriptor: takes the bytes of a
// write(2) and returns an errno or the bytes for the response address in the command.
// It never follows an address: memory and descriptors that a command names come in as inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <rdma/rdma_user_cm.h>

#include "simverbs/rdma_cm/ucma.hpp"

namespace simverbs::rdma_cm {

class UcmaFile;

class UcmaObserver {
  public:
    // An event waits in the file. Calls no command before it returns.
    virtual void event_available(UcmaFile& file) = 0;

  protected:
    ~UcmaObserver() = default;
};

// The answer to a write. Where `bytes` cannot be written to `address` of the program's memory, the
// write fails with EFAULT; the command has been carried out nevertheless.
struct UcmaReply {
    int error = 0;  // an errno, or 0: the write returns the number of bytes written
    std::uint64_t address = 0;
    std::vector<std::uint8_t> bytes;
};

// The memory or the descriptor that a command refers to besides its bytes.
struct UcmaNeeds {
    // SET_OPTION reads memory. 0 bytes: none.
    std::uint64_t option_address = 0;
    std::size_t option_bytes = 0;
    // MIGRATE_ID names a descriptor of the program.
    std::optional<std::uint32_t> descriptor;
};

struct UcmaInputs {
    // The memory that is needed; nothing: the program cannot read it.
    std::optional<std::span<const std::uint8_t>> option;
    bool descriptor_is_open = false;
    UcmaFile* file = nullptr;  // behind the descriptor, where it is one of rdma_cm
};

class UcmaFile {
  public:
    static constexpr std::size_t kMaxEvents = 65'536;       // more are lost
    static constexpr std::size_t kMaxOptionBytes = 65'536;  // more are EINVAL
    static constexpr std::uint32_t kMaxBacklog = 1024;      // net.rdma_ucm.max_backlog

    // `ucma` and `observer` outlive the file.
    UcmaFile(Ucma& ucma, UcmaObserver& observer) : ucma_(ucma), observer_(observer) {}
    // Destroys its ids as if the program had: peers are disconnected or rejected.
    ~UcmaFile();
    UcmaFile(const UcmaFile&) = delete;
    UcmaFile& operator=(const UcmaFile&) = delete;

    // An event waits: the descriptor is readable.
    [[nodiscard]] bool has_event() const { return !events_.empty(); }

    [[nodiscard]] static UcmaNeeds needs(std::span<const std::uint8_t> written);
    // GET_EVENT without an event is EAGAIN: the caller of a blocking descriptor waits for
    // event_available() and writes again.
    UcmaReply write(std::span<const std::uint8_t> written, const UcmaInputs& inputs = {});

    // Calls visit(number, id) for each id, `number` being what the program knows it by.
    template <class F>
    void for_each_id(F&& visit) const {
        for (const auto& [place, number] : contexts_) {
            const auto context = ucma_.contexts_.find(number);
            if (context != ucma_.contexts_.end() && context->second.id) {
                if (const RdmaId* const id = ucma_.rdma_cm_.find(*context->second.id)) {
                    visit(number, *id);
                }
            }
        }
    }

  private:
    friend class Ucma;

    struct Command {
        std::span<const std::uint8_t> payload;  // all that was written after the header
        std::size_t in;                         // as the header says
        std::size_t out;
        const UcmaInputs& inputs;
    };
    using Handler = UcmaReply (UcmaFile::*)(const Command&);

    static Handler handler_of(std::uint32_t command);

    // Ids and events (ucma_file.cpp).
    UcmaReply create_id(const Command& command);
    UcmaReply destroy_id(const Command& command);
    UcmaReply get_event(const Command& command);
    UcmaReply migrate_id(const Command& command);
    UcmaReply set_option(const Command& command);
    // Addresses, routes, listeners (ucma_file_addresses.cpp).
    UcmaReply bind_ip(const Command& command);
    UcmaReply bind_address(const Command& command);
    UcmaReply resolve_ip(const Command& command);
    UcmaReply resolve_addr(const Command& command);
    UcmaReply resolve_route(const Command& command);
    UcmaReply listen(const Command& command);
    UcmaReply join_ip_multicast(const Command& command);
    UcmaReply join_multicast(const Command& command);
    UcmaReply leave_multicast(const Command& command);
    // Connections (ucma_file_connections.cpp).
    UcmaReply connect(const Command& command);
    UcmaReply accept(const Command& command);
    UcmaReply reject(const Command& command);
    UcmaReply disconnect(const Command& command);
    UcmaReply notify(const Command& command);
    UcmaReply init_qp_attr(const Command& command);
    // Queries (ucma_file_queries.cpp).
    UcmaReply query_route(const Command& command);
    UcmaReply query(const Command& command);
    [[nodiscard]] UcmaReply query_addr(const RdmaId& id, std::size_t out) const;
    [[nodiscard]] UcmaReply query_gid(const RdmaId& id, std::size_t out) const;
    void put_device(const RdmaId& id, rdma_ucm_query_addr_resp& response) const;

    // The context, or nullptr and the error: ENOENT, EINVAL (of another file), EIO (its device has
    // gone).
    std::pair<UcmaContext*, int> find_context(std::uint32_t number);
    std::pair<RdmaId*, int> find_id(std::uint32_t number);
    // Likewise; EINVAL if the id is not bound to a device.
    std::pair<RdmaId*, int> find_bound_id(std::uint32_t number);
    UcmaReply join(const rdma_ucm_join_mcast& command, std::size_t out);
    int set_id_option(RdmaId& id, std::uint32_t name, std::span<const std::uint8_t> value);
    int set_path(RdmaId& id, std::span<const std::uint8_t> value);

    // False: it is lost, as where the kernel has no memory.
    bool queue(const UcmaEvent& event);
    void drop_events(const std::set<std::uint64_t>& events);

    Ucma& ucma_;
    UcmaObserver& observer_;
    std::map<std::uint64_t, std::uint32_t> contexts_;  // by place
    std::map<std::uint64_t, UcmaEvent> events_;
};

}  // namespace simverbs::rdma_cm
