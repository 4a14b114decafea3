// Which memory of the program the device has for the time being, and which keys are no longer:
// kept only where mistakes are to be named (SIMVERBS_WARN=1), so that without it posting and
// polling cost one comparison with a null pointer.
//
// A request is over for the program when a completion of it, or of a later one of its queue, has
// been polled (IBA 10.8.5.1); until then its buffer is the device's. What a peer writes into it
// meanwhile cannot be told from what the program does.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "simverbs/driver/queues.hpp"
#include "simverbs/model/misuse.hpp"

namespace simverbs::abi {

class BufferWatch {
  public:
    struct Found {
        Misuse misuse;
        std::uint32_t subject;
        std::string detail;
    };
    // One work queue: of a queue pair, by its number, or shared, by its handle.
    struct Queue {
        CompletedQueue kind;
        std::uint32_t number;
        auto operator<=>(const Queue&) const = default;
    };

    // `sees_every_key`: all devices of the fabric are this process's, and so are all remote keys.
    explicit BufferWatch(bool sees_every_key) : sees_every_key_(sees_every_key) {}

    // `iova`: what the work requests call its first byte.
    void region_begins(const ibv_mr& mr, std::uint64_t iova);
    // Says so when a request under way uses it.
    [[nodiscard]] std::optional<Found> region_ends(const ibv_mr& mr);
    static void window_key_begins(std::uint32_t rkey);

    // A request was written at `index` of its queue; `takes_bytes`: out of the segments. What is
    // wrong with it already.
    [[nodiscard]] std::optional<Misuse> posted(const Queue& queue, std::uint32_t index,
                                               std::uint64_t wr_id,
                                               std::span<const ibv_sge> segments, bool takes_bytes);
    [[nodiscard]] bool is_dead_remote_key(std::uint32_t rkey) const;
    // A completion was polled.
    void completed(const Cqe& entry);
    // A send before `end` whose completion was not polled.
    [[nodiscard]] bool has_send_before(std::uint32_t qpn, std::uint32_t end) const;
    // Takes what was found while polling.
    [[nodiscard]] std::optional<Found> take();
    // The queue has forgotten its requests.
    void forget(const Queue& queue);

    // In a new world no key has ended.
    static void forget_remote_keys();

  private:
    struct Request {
        std::uint64_t wr_id;
        std::vector<ibv_sge> segments;
        std::optional<std::uint64_t> digest;  // none where nothing is taken, or cannot be read
    };
    struct Region {
        std::uint64_t iova;
        std::uint64_t address;
    };
    using Requests = std::map<std::uint32_t, Request>;  // by index, in the order of posting

    void end(const Queue& queue, const Request& request);
    // Returns the digest of the bytes now; nothing where they are not memory that was registered
    // here.
    [[nodiscard]] std::optional<std::uint64_t> digest_of(std::span<const ibv_sge> segments) const;

    const bool sees_every_key_;
    mutable std::mutex lock_;
    std::map<Queue, Requests> requests_;
    std::map<std::uint32_t, Region> regions_;  // by lkey
    std::set<std::uint32_t> dead_local_keys_;
    std::optional<Found> found_;
};

}  // namespace simverbs::abi
