// The faults of a world that a test put in place by hand, by id. Ids count from 1 and are never
// used again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "fabric/faults/drop_nth.hpp"
#include "fabric/faults/rewrite_nth.hpp"
#include "fabric/net/network.hpp"

#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {

class FaultBoard {
  public:
    // The network outlives the board.
    explicit FaultBoard(fabric::Network& network) : network_(network) {}

    // `nth` counts from 1, from now on.
    fabric::FaultId drop_nth(fabric::LinkDirection& direction, std::uint64_t nth);
    fabric::FaultId drop_all(fabric::LinkDirection& direction);
    // Another opcode in the base transport header of that frame.
    fabric::FaultId rewrite_nth(fabric::LinkDirection& direction, std::uint64_t nth,
                                std::uint8_t opcode);
    // The next work request of that queue completes with `status`. Nothing: one is to fail already.
    std::optional<fabric::FaultId> fail_next(Hca& hca, QueuePair& qp, CompletedQueue queue,
                                             WcStatus status, FaultCause cause);
    // False: there is none of that id.
    bool clear(fabric::FaultId id);

    // These happen at once, and cannot be taken back.
    // The device cannot read a ring of its own queues. False: the queue pair has none in use.
    bool break_ring(Hca& hca, QueuePair& qp, CompletedQueue queue);
    void break_ring(Hca& hca, SharedReceiveQueue& srq);
    void kill(Hca& hca);

  private:
    // Waits at a queue pair, which may be gone by now.
    struct OfQueuePair {
        Hca* hca;
        std::uint32_t qpn;
    };
    using Fault = std::variant<std::unique_ptr<fabric::DropNth>, std::unique_ptr<fabric::DropAll>,
                               std::unique_ptr<fabric::RewriteNth>, OfQueuePair>;

    fabric::Network& network_;
    std::map<fabric::FaultId, Fault> faults_;
    std::uint32_t last_id_ = 0;
};

}  // namespace simverbs
