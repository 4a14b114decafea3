// The memory of a client process, reached as a DMA engine would: where it is shared, directly;
// elsewhere by process_vm_readv and writev, or, where the system forbids that (Yama, seccomp in
// containers), through a thread of the client.
#pragma once

#include <sys/types.h>

#include "simverbs/protocol/client_area.hpp"
#include "simverbs/server/shared_regions.hpp"
#include "simverbs/wire/payload.hpp"

namespace simverbs {

class ProcessMemory final : public AddressSpace {
  public:
    // `socket` closes when the process ends or becomes another program.
    // `acts`: counts, from 1 on, what programs ask of the world. Whether memory that is shared is
    // still mapped is looked up again after each, where nothing reports it (UnmapWatch): who acts
    // upon an unmapping acts after it.
    ProcessMemory(pid_t process, int socket, ClientArea& area, const std::uint64_t& acts)
        : process_(process), socket_(socket), area_(area), acts_(acts) {}

    bool read(std::uint64_t address, std::byte* bytes, std::size_t length) override;
    bool write(std::uint64_t address, const std::byte* bytes, std::size_t length) override;
    [[nodiscard]] bool is_own() const override { return false; }
    [[nodiscard]] std::byte* reach(std::uint64_t address, std::uint64_t length) override;

    // Returns true if the kernel lets this process reach the client's memory: reads the word at
    // `address`, which should hold `value`.
    bool probe(std::uint64_t address, std::uint64_t value);
    void copy_through_client() { by_client_ = true; }
    [[nodiscard]] bool is_copied_by_client() const { return by_client_; }
    // The parts of it that this process has mapped, too.
    [[nodiscard]] SharedRegions& shared() { return shared_; }
    // The process is gone, or has become another program: every access fails from here on.
    void forget() { gone_ = true; }
    [[nodiscard]] bool is_gone() const override { return gone_; }
    // The client copied too slowly, too often: it was hung up on.
    [[nodiscard]] bool was_too_slow() const { return too_slow_; }

  private:
    // How long late answers of a client may hold the world in all: of processor time of this
    // thread, or of time in which the client slept. A fiftieth of the time between them is added,
    // up to this.
    static constexpr std::int64_t kPatienceNs = 200'000'000;

    // Returns true if the socket is still open; asks that once in an interval.
    [[nodiscard]] bool is_there(std::int64_t interval_ns);
    void look();
    bool is_mapped_still(SharedRegions::Region& region);
    bool has_ends(const PageRange& pages);
    bool by_kernel(bool write, std::uint64_t address, std::byte* bytes, std::size_t length);
    bool ask_client(CopyWord what, std::uint64_t address, std::uint32_t length);
    [[nodiscard]] bool has_answered() const;
    bool await_answer();

    pid_t process_;
    int socket_;
    ClientArea& area_;
    SharedRegions shared_;
    const std::uint64_t& acts_;
    bool by_client_ = false;
    bool gone_ = false;
    bool too_slow_ = false;
    std::int64_t patience_ns_ = kPatienceNs;
    std::int64_t answered_late_at_ns_ = 0;  // wall clock
    std::int64_t looked_at_ns_ = 0;         // wall clock
};

}  // namespace simverbs
