// What a protocol engine may cause: the one interface through which its effects leave.
//
// Engines hold no clock, no lock and no global. A queue pair of the device implements this, and a
// test implements it with vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fabric/core/sim_time.hpp"

#include "simverbs/model/access.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/hw_counters.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/psn.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/transport/tag_list.hpp"
#include "simverbs/transport/work_queue.hpp"
#include "simverbs/wire/packet.hpp"
#include "simverbs/wire/payload.hpp"
#include "simverbs/wire/tag_headers.hpp"

namespace simverbs {

// Why a key did not open a range of memory; what becomes of it depends on who asked.
enum class KeyVerdict : std::uint8_t {
    kGranted,
    kUnknownKey,
    kOtherProtectionDomain,
    kRightMissing,
    kOutOfRange,
};

// What a granted key opens: bytes of somebody's virtual memory.
struct Grant {
    KeyVerdict verdict = KeyVerdict::kUnknownKey;
    MemorySpan span;
};

enum class EngineTimer : std::uint8_t {
    kAcknowledge,  // requester: the oldest unacknowledged packet got no answer
    kRnr,          // requester: the responder asked to wait
    kPacing,       // responder: the transmitter has drained, more of a READ response may go
    kTransmitted,  // requester without acknowledgments: what was handed over has left the port
    kRate,         // requester: a packet has had its time at the rate that congestion leaves
    kAlpha,        // the share of congested time falls
    kIncrease,     // the rate rises
};
inline constexpr std::size_t kEngineTimers = 7;

// Whether a queue pair may send to where an address handle leads (IBA 11.2.2.1).
enum class AddressVerdict : std::uint8_t { kUsable, kUnknown, kOtherPort, kOtherProtectionDomain };

// What became of an Ethernet frame that somebody made by hand.
enum class FrameVerdict : std::uint8_t {
    kSent,
    kWrongLength,  // no header, or more than the link carries
    kUnreadable,   // its bytes are not mapped (any more)
};

// Whether the device could bring a work request in, or as what it fails.
struct FetchVerdict {
    WcStatus failure = WcStatus::kSuccess;
    FaultCause cause = FaultCause::kSuccess;
};

// A completion as an engine sees it; the queue pair adds its number and finds the queue.
struct SendCompletion {
    std::uint64_t wr_id = 0;
    WcStatus status = WcStatus::kSuccess;
    WcOpcode opcode = WcOpcode::kSend;
    FaultCause cause = FaultCause::kSuccess;
    std::uint32_t byte_length = 0;
    bool has_immediate = false;  // only where the personality reports it to the sender
    std::uint32_t freed_to = 0;  // send queue index; see Cqe
};

struct ReceiveCompletion {
    std::uint64_t wr_id = 0;
    WcStatus status = WcStatus::kSuccess;
    WcOpcode opcode = WcOpcode::kRecv;
    FaultCause cause = FaultCause::kSuccess;
    std::uint32_t byte_length = 0;
    std::uint32_t immediate = 0;
    bool has_immediate = false;
    bool invalidated = false;  // `immediate` is the rkey
    bool solicited = false;
    bool has_grh = false;            // the first 40 bytes of a datagram's receive were filled
    std::uint32_t source_qpn = 0;    // of a datagram
    bool ip_checksum_holds = false;  // of a raw packet, like the next two
    std::uint32_t flow_tag = 0;
    std::uint16_t cvlan = 0;     // the tag that was taken out of it; 0: none
    std::uint32_t freed_to = 0;  // receive queue index; see Cqe
    SrqNumber srq = kNoSrq;      // that the receive was taken from, where its packet named one
    // Set for a message with a tag header, where the queue pair matches tags.
    const TaggedBuffer* buffer = nullptr;  // that it matched; freed_to is its handle + 1
    bool has_tag = false;                  // the next one is set
    TagInfo tag;
    WcFlags tag_flags;
};

// What became of a message with a tag header.
enum class TagOutcome : std::uint8_t {
    kMatched,
    kUnexpected,  // no tag matches: it takes an ordinary receive
    kNotInUse,    // likewise: a tag that would match waits until software has reported
    kNoTag,       // likewise: it says that it has none
};
inline constexpr auto kTagOutcomeNames =
    std::to_array<std::string_view>({"matched", "unexpected", "not in use", "no tag"});
constexpr std::string_view to_string(TagOutcome outcome) {
    return kTagOutcomeNames[static_cast<std::size_t>(outcome)];
}

// A message with a tag header has found its buffer.
struct TagDecision {
    TagOutcome outcome = TagOutcome::kNoTag;
    TagOpcode opcode = TagOpcode::kNoTag;
    std::uint64_t tag = 0;
    std::uint8_t handle = 0;  // of the tag that it matched
    bool by_device = false;   // a rendezvous that the device carries out
};

// What became of a key that was to be invalidated.
enum class InvalidateVerdict : std::uint8_t {
    kInvalidated,
    kRefused,  // it is none, or a region's, or another's
    kType1,    // a window that can never be (IBA o10-37.2.26)
};

// Why an engine takes its queue down. An engine returns it; the queue fails when the engine has
// returned, so nothing flushes an engine that is at work.
struct EngineFailure {
    QpTrigger trigger = QpTrigger::kQpError;
    FaultCause cause = FaultCause::kSuccess;
};
using EngineResult = std::optional<EngineFailure>;

// What a queue of receives may cause: a queue pair's, or a work queue's.
//
// A request to an XRC target names the shared receive queue whose receives, keys and memory it uses
// (IBA A14). `srq` passes that name on; it is kNoSrq, and means nothing, everywhere else.
class ReceiveEffects {
  public:
    ReceiveEffects(const ReceiveEffects&) = delete;
    ReceiveEffects& operator=(const ReceiveEffects&) = delete;

    // A segment of a receive, which is written to.
    [[nodiscard]] virtual Grant open_receive(SrqNumber srq, const Segment& segment) = 0;
    // Copies a packet's payload to `offset` bytes into this side's `spans`.
    virtual CopyOutcome place(SrqNumber srq, const Payload& from, std::span<const MemorySpan> spans,
                              std::uint64_t offset) = 0;
    // Takes the next receive; false when none is posted. Segments beyond `segments` are not copied.
    virtual bool take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                              std::uint32_t& index) = 0;
    // A request has been carried out whole, `length` bytes of it.
    virtual void delivered(MessageKind kind, std::uint64_t length) = 0;
    // False where the completion takes the queue down, since its completion queue overran or a
    // fault was injected: the engine does nothing more. The queue knows the cause.
    virtual bool complete(const ReceiveCompletion& completion) = 0;

  protected:
    ReceiveEffects() = default;
    ~ReceiveEffects() = default;
};

class Effects : public ReceiveEffects {
  public:
    // Puts a packet on the wire, or a train; its payload spans stay valid until the work request
    // completes.
    virtual void transmit(const Packet& packet) = 0;
    // As how many packets at most one may go to transmit(), where they follow each other.
    [[nodiscard]] virtual std::uint16_t longest_train() const = 0;
    // The same, with the payload's bytes taken now: the sender may change or free them at once. An
    // XRC target takes them out of the memory of the queue that the packet names.
    virtual CopyOutcome transmit_snapshot(const Packet& packet) = 0;
    // ... to where an address handle leads, instead of the queue pair's peer.
    virtual CopyOutcome transmit_datagram(const Packet& packet, std::uint32_t address_handle) = 0;
    [[nodiscard]] virtual AddressVerdict check_address(std::uint32_t address_handle) const = 0;
    // Puts an Ethernet frame on the wire, from its destination address to the end of its data. The
    // bytes are taken now, padded to the shortest frame that there may be, and the checksums of
    // IPv4 and what it carries written if wanted.
    virtual FrameVerdict transmit_frame(const Payload& frame, bool fill_checksums) = 0;
    // Arms a timer for the time at which the port's transmitter has sent all it was given, and not
    // before `at_least` from now.
    virtual void arm_when_transmitter_free(EngineTimer timer, fabric::SimDuration at_least) = 0;

    // A segment of a send request.
    [[nodiscard]] virtual Grant open_local(const Segment& segment, AccessRights needed) = 0;
    [[nodiscard]] virtual Grant open_remote(SrqNumber srq, std::uint32_t rkey,
                                            std::uint64_t address, std::uint64_t length,
                                            AccessRights needed) = 0;
    // The same for a key alone, whichever of its bytes.
    [[nodiscard]] virtual KeyVerdict check_remote(SrqNumber srq, std::uint32_t rkey,
                                                  AccessRights needed) = 0;
    // Carries out a BIND_MW of this queue pair; false when it is refused and has changed nothing.
    virtual bool bind_window(const WindowBinding& binding) = 0;
    // Takes a type 2 window's rkey away, for LOCAL_INV or the peer's SEND_WITH_INV, where the key
    // is of a window that is bound to this queue pair.
    virtual InvalidateVerdict invalidate(SrqNumber srq, std::uint32_t rkey) = 0;
    // A number that changes whenever a grant given earlier may have ended.
    [[nodiscard]] virtual std::uint64_t key_generation() const = 0;

    // Writes the global route header of the packet under way to the first 40 bytes of `spans`,
    // which stay as they are where it has none.
    virtual CopyOutcome place_grh(std::span<const MemorySpan> spans, bool& had_one) = 0;
    // Reads or writes eight bytes of this side's memory.
    virtual bool load(SrqNumber srq, const MemorySpan& from, std::uint64_t& value) = 0;
    virtual bool store(SrqNumber srq, const MemorySpan& to, std::uint64_t value) = 0;
    // The payload of a packet could not be read where it lies: its sender has a protection error.
    virtual void source_fault(const Packet& packet) = 0;

    // Copies slot `index` of the send ring; `tail` takes its segments or its inline bytes.
    virtual FetchVerdict fetch_send(std::uint32_t index, SendWqe& wqe,
                                    std::span<std::byte> tail) = 0;
    // Whether requests to this queue pair may name that shared receive queue.
    [[nodiscard]] virtual bool is_served_by(SrqNumber srq) const = 0;

    // Copies the first bytes of a payload to the device.
    virtual CopyOutcome read_head(const Payload& from, std::span<std::byte> into) = 0;
    // For the trace alone.
    virtual void decided(const TagDecision& decision) = 0;
    // Sends a request of the device's own on this queue pair.
    virtual void send_of_device(const DeviceWork& request) = 0;
    // The oldest READ of a rendezvous is over; kSuccess: its data has landed. As complete().
    virtual bool rendezvous_ended(FaultCause cause) = 0;

    // A request without acknowledgment went no further; nobody else is told.
    virtual void discarded(const Packet& packet, FaultCause cause) = 0;
    using ReceiveEffects::complete;
    virtual bool complete(const SendCompletion& completion, bool signaled) = 0;

    virtual void arm(EngineTimer timer, fabric::SimDuration after) = 0;
    [[nodiscard]] virtual bool armed(EngineTimer timer) const = 0;
    virtual void disarm(EngineTimer timer) = 0;

    // Memory goes back to the application while packets that refer to it may still be about: they
    // get bytes of their own.
    virtual void keep_payloads_in_flight() = 0;

    // The retries are used up: true where an alternate path was armed, which is the path now.
    virtual bool migrate() = 0;
    virtual void raise(AsyncEvent event) = 0;
    // What happens on a good day is counted elsewhere: by delivered() and complete().
    virtual void count(HwCounter counter) = 0;

  protected:
    Effects() = default;
    ~Effects() = default;
};

}  // namespace simverbs
