// The protocol engine of a queue pair: carries out its work requests, and takes what arrives for
// it. One a kind of service: MessageEngine, RawPacketEngine, and SpreadEngine of the HCA.
//
// A queue pair makes its engine when there is something to do. RESET ends it, so nothing of the
// life before is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "simverbs/model/congestion.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/transport/engine_result.hpp"
#include "simverbs/transport/queue_effects.hpp"
#include "simverbs/transport/timer_effects.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"

namespace simverbs {

class RateReaction;
struct FrameHeaders;
struct ReceivedFrame;

// The memories a payload may lie in: the application's, and the device's own (inline data).
struct QpMemory {
    AddressSpace* application = nullptr;
    AddressSpace* device = nullptr;
};

// How far an engine is. Counts and indices are modulo 2^32.
struct EngineProgress {
    std::optional<Psn> next_psn;      // of the next request; nothing: the service has no PSNs
    std::optional<Psn> expected_psn;  // of the peer's next one
    std::uint32_t sends = 0;          // posted and not complete
    std::uint32_t started = 0;        // of them on the wire
    std::uint32_t first_send = 0;     // index of the first that is not complete
    std::uint8_t retries_left = 0;
    std::uint8_t rnr_retries_left = 0;  // 7: without limit
    std::uint32_t rnr_naks = 0;         // for the oldest request
    SrqNumber last_srq = kNoSrq;        // XRC: that the last receive was taken from
    bool keeps_receive = false;         // taken for a message that was dropped
};

class Engine {
  public:
    virtual ~Engine() = default;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Getters.
    [[nodiscard]] virtual EngineProgress progress() const { return {}; }
    // Returns true if nothing that had started is left.
    [[nodiscard]] virtual bool drained() const { return true; }
    // Returns true if neither a request nor an answer waits.
    [[nodiscard]] virtual bool idle() const { return true; }

    // Commands of the queue pair. A service that lacks the subject of one ignores it.
    virtual void start_receiving() {}                 // INIT to RTR
    virtual void start_sending() {}                   // RTR to RTS
    virtual void resume_sending() {}                  // SQE to RTS
    virtual void post(std::uint32_t /*producer*/) {}  // work requests before this index exist
    virtual EngineResult run() { return {}; }         // sends what may be sent
    virtual void flush_sends() {}    // completes all that is left with WR_FLUSH_ERR
    virtual void flush_receive() {}  // the same for a receive that was taken
    // The queue has room for more or fewer requests; no packet refers to one any more.
    virtual void resize(const WorkQueueShape& /*shape*/) {}
    // Congestion limits the rate from now on; `rate` outlives the engine.
    virtual void set_rate(RateReaction& /*rate*/) {}
    // Another process owns the queue pair from now on.
    virtual void move_memory(QpMemory /*memory*/) {}

    // Tags and shared receive queues: see Responder and Requester.
    virtual void forget_receive(SrqNumber /*srq*/) {}
    virtual void give_up_tags() {}
    virtual void add(const DeviceWork& /*request*/) {}
    virtual bool rendezvous_ended(FaultCause /*cause*/) { return true; }

    // Inputs from the network and from time.
    virtual EngineResult receive(const Packet& /*packet*/) { return {}; }
    [[nodiscard]] virtual bool take_ahead(const Packet& /*train*/) { return false; }
    // Returns true if it would take the train ahead, and says where it would be placed, at least.
    [[nodiscard]] virtual bool would_take(const Packet& /*train*/,
                                          std::span<const MemorySpan>& /*to*/) {
        return false;
    }
    // The payload of one of its packets could not be read.
    virtual EngineResult fail_source(Psn /*psn*/) { return {}; }
    // A frame that flow steering gave to the queue pair.
    virtual EngineResult receive_frame(const ReceivedFrame& /*frame*/,
                                       const FrameHeaders& /*headers*/) {
        return {};
    }
    virtual EngineResult timer_expired(EngineTimer /*timer*/) { return {}; }

  protected:
    Engine() = default;
};

}  // namespace simverbs
