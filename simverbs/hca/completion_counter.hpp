// A completion counter: how many requests of its queue pairs have completed, and how many failed,
// in memory that its driver reads (ibv_create_comp_cntr(3) of rdma-core 65).
//
// It counts requests, not bytes, whether or not they leave an entry in a completion queue. What is
// flushed has failed. A request of the peer that is refused is an error of the peer alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "simverbs/hca/client.hpp"
#include "simverbs/hca/completion_counter_command.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"

namespace simverbs {

class CompletionCounter {
  public:
    CompletionCounter(Client& client, const RingMemory& ring) : client_(client), ring_(ring) {}
    ~CompletionCounter() { client_.release_ring(ring_); }
    CompletionCounter(const CompletionCounter&) = delete;
    CompletionCounter& operator=(const CompletionCounter&) = delete;

    // A request has completed; the client is told.
    void count(CounterEntry entry);
    void set(CounterEntry entry, std::uint64_t value);
    void add(CounterEntry entry, std::uint64_t amount);
    // Its device died: nothing is counted any more.
    void stop() { stopped_ = true; }

    std::uint32_t uses = 0;  // operations of queue pairs that it counts

  private:
    Client& client_;
    RingMemory ring_;
    bool stopped_ = false;
    std::array<std::uint64_t, kCounterEntries> values_{};
};

// The counters of one queue pair, at most one an operation.
class AttachedCounters {
  public:
    AttachedCounters() = default;
    ~AttachedCounters();
    AttachedCounters(const AttachedCounters&) = delete;
    AttachedCounters& operator=(const AttachedCounters&) = delete;

    // False, and nothing has changed, where one of the operations has a counter.
    [[nodiscard]] bool attach(CompletionCounter& counter, std::uint32_t operations);

    [[nodiscard]] bool has(const CompletionCounter& counter) const {
        return std::find(counters_.begin(), counters_.end(), &counter) != counters_.end();
    }

    // A request of this side has completed, by its opcode.
    void completed(WcOpcode opcode, WcStatus status);
    // A request of the peer was carried out.
    void carried_out(MessageKind kind);

  private:
    void count(CountedOperation operation, CounterEntry entry);

    std::array<CompletionCounter*, kCountedOperations> counters_{};
};

}  // namespace simverbs
