// Effects that write down what an engine causes. Keys are those that a test grants; nothing has a
// clock: a timer is what it was armed with, and a test decides that it fires.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "simverbs/model/opcodes.hpp"
#include "simverbs/transport/effects.hpp"
#include "simverbs/transport/qp_attributes.hpp"

namespace simverbs::test {

struct PostedReceive {
    std::uint64_t wr_id = 0;
    std::vector<Segment> segments;
};

struct PostedSend {
    SendWqe wqe;
    std::vector<Segment> segments;
    std::vector<std::byte> inline_bytes;
};

// Memory as numbers: placing copies nothing and writes down where.
struct Placement {
    std::uint64_t address = 0;
    std::uint64_t offset = 0;
    std::uint32_t length = 0;
};

struct SentFrame {
    std::uint32_t length = 0;
    std::uint32_t spans = 0;
    bool fill_checksums = false;
};

class RecordingEffects final : public Effects {
  public:
    static constexpr std::uint32_t kGoodKey = 0x100;      // every right, addresses below kEnd
    static constexpr std::uint32_t kReadOnlyKey = 0x200;  // no right that writes
    static constexpr std::uint32_t kOtherPdKey = 0x300;
    static constexpr std::uint64_t kEnd = 1ULL << 40;

    explicit RecordingEffects(QpAttributes& attributes) : attributes_(attributes) {}

    // The effects that the engine caused. take_packets() forgets the packets.
    std::vector<Packet> packets;
    std::vector<SendCompletion> sent;  // signaled ones
    std::vector<ReceiveCompletion> received;
    std::vector<Placement> placed;
    std::vector<AsyncEvent> events;
    HwCounters counters;
    std::vector<FaultCause> failures;
    std::vector<Psn> source_faults;
    std::vector<WindowBinding> bindings;
    std::vector<std::uint32_t> invalidated;
    std::map<EngineTimer, fabric::SimDuration> timers;
    std::vector<SentFrame> frames;
    std::size_t snapshots = 0;
    std::size_t keeps = 0;
    std::size_t pacings = 0;
    std::size_t messages_delivered = 0;

    std::vector<FaultCause> discards;
    std::vector<PacketFate> fates;
    std::vector<std::uint32_t> addresses;  // that datagrams went to
    SrqNumber remote_key_of;               // that the last request named which opened a key
    SrqNumber receive_key_of;              // ... a receive
    std::vector<TagDecision> decisions;
    std::vector<DeviceWork> device_work;
    std::vector<FaultCause> rendezvous;

    // The world that the engine finds.
    std::set<SrqNumber> shared_queues;  // that serve this queue pair
    AddressVerdict address_verdict = AddressVerdict::kUsable;
    bool has_grh = false;
    std::vector<std::byte> head;  // of the payload of every packet
    CopyOutcome head_outcome = CopyOutcome::kCopied;
    bool has_alternate_path = false;
    std::deque<PostedSend> sends;  // by index, from 0
    std::deque<PostedReceive> receives;
    std::map<std::uint64_t, std::uint64_t> words;  // memory that atomics use
    CopyOutcome place_outcome = CopyOutcome::kCopied;
    CopyOutcome snapshot_outcome = CopyOutcome::kCopied;
    std::uint16_t train = 1;
    bool accepts_windows = true;
    InvalidateVerdict refusal = InvalidateVerdict::kRefused;  // where they are not
    FrameVerdict frame_verdict = FrameVerdict::kSent;
    std::set<std::uint32_t> revoked;
    std::uint64_t generation = 1;
    bool overruns = false;          // the completion queue, at the next completion
    std::function<void()> on_fail;  // flushes the engines, as a queue pair does

    // Carries out what an engine has returned, after what happened while it was at work.
    void end(const EngineResult& result);
    void fail(QpTrigger trigger, FaultCause cause);

    std::vector<Packet> take_packets() { return std::exchange(packets, {}); }
    void revoke(std::uint32_t key) {
        revoked.insert(key);
        ++generation;
    }
    std::uint32_t post(const PostedSend& send) {
        sends.push_back(send);
        return static_cast<std::uint32_t>(sends.size());
    }

    void transmit(const Packet& packet) override { packets.push_back(packet); }
    [[nodiscard]] std::uint16_t longest_train() const override { return train; }
    CopyOutcome transmit_snapshot(const Packet& packet) override {
        if (snapshot_outcome == CopyOutcome::kCopied) {
            ++snapshots;
            packets.push_back(packet);
        }
        return snapshot_outcome;
    }
    FrameVerdict transmit_frame(const Payload& frame, bool fill_checksums) override {
        frames.push_back({frame.length, frame.span_count, fill_checksums});
        return frame_verdict;
    }
    CopyOutcome transmit_datagram(const Packet& packet, std::uint32_t address_handle) override {
        addresses.push_back(address_handle);
        return transmit_snapshot(packet);
    }
    [[nodiscard]] AddressVerdict check_address(std::uint32_t /*address_handle*/) const override {
        return address_verdict;
    }
    void arm_when_transmitter_free(EngineTimer timer, fabric::SimDuration at_least) override {
        ++pacings;
        timers[timer] = at_least;
    }
    Grant open_receive(SrqNumber srq, const Segment& segment) override {
        receive_key_of = srq;
        return open_local(segment, Access::kLocalWrite);
    }
    Grant open_local(const Segment& segment, AccessRights needed) override {
        return open(segment.lkey, segment.address, segment.length, needed);
    }
    Grant open_remote(SrqNumber srq, std::uint32_t rkey, std::uint64_t address,
                      std::uint64_t length, AccessRights needed) override {
        remote_key_of = srq;
        return open(rkey, address, length, needed);
    }
    KeyVerdict check_remote(SrqNumber /*srq*/, std::uint32_t rkey, AccessRights needed) override {
        return open(rkey, 0, 0, needed).verdict;
    }
    bool bind_window(const WindowBinding& binding) override {
        bindings.push_back(binding);
        return accepts_windows;
    }
    InvalidateVerdict invalidate(SrqNumber /*srq*/, std::uint32_t rkey) override {
        invalidated.push_back(rkey);
        return accepts_windows ? InvalidateVerdict::kInvalidated : refusal;
    }
    [[nodiscard]] std::uint64_t key_generation() const override { return generation; }
    CopyOutcome place(SrqNumber /*srq*/, const Payload& from, std::span<const MemorySpan> spans,
                      std::uint64_t offset) override {
        if (place_outcome == CopyOutcome::kCopied) {
            placed.push_back({spans.empty() ? 0 : spans[0].address, offset, from.length});
        }
        return place_outcome;
    }
    CopyOutcome place_grh(std::span<const MemorySpan> /*spans*/, bool& had_one) override {
        had_one = has_grh;
        return place_outcome;
    }
    bool load(SrqNumber /*srq*/, const MemorySpan& from, std::uint64_t& value) override {
        value = words[from.address];
        return true;
    }
    bool store(SrqNumber /*srq*/, const MemorySpan& to, std::uint64_t value) override {
        words[to.address] = value;
        return true;
    }
    void source_fault(const Packet& packet) override { source_faults.push_back(packet.psn); }
    FetchVerdict fetch_send(std::uint32_t index, SendWqe& wqe, std::span<std::byte> tail) override;
    bool take_receive(SrqNumber srq, RecvWqe& wqe, std::span<Segment> segments,
                      std::uint32_t& index) override;
    [[nodiscard]] bool is_served_by(SrqNumber srq) const override {
        return shared_queues.contains(srq);
    }
    CopyOutcome read_head(const Payload& /*from*/, std::span<std::byte> into) override {
        std::ranges::copy_n(head.begin(),
                            static_cast<std::ptrdiff_t>(std::min(head.size(), into.size())),
                            into.begin());
        return head_outcome;
    }
    void decided(const TagDecision& decision) override { decisions.push_back(decision); }
    void send_of_device(const DeviceWork& request) override { device_work.push_back(request); }
    bool rendezvous_ended(FaultCause cause) override {
        rendezvous.push_back(cause);
        return !overruns;
    }
    void discarded(const Packet& /*packet*/, FaultCause cause) override {
        discards.push_back(cause);
    }
    void discarded(const Packet& /*packet*/, PacketFate fate) override { fates.push_back(fate); }
    void delivered(MessageKind /*kind*/, std::uint64_t /*length*/) override {
        ++messages_delivered;
    }
    bool complete(const SendCompletion& completion, bool signaled) override;
    bool complete(const ReceiveCompletion& completion) override;
    void arm(EngineTimer timer, fabric::SimDuration after) override { timers[timer] = after; }
    [[nodiscard]] bool armed(EngineTimer timer) const override { return timers.contains(timer); }
    void disarm(EngineTimer timer) override { timers.erase(timer); }
    void keep_payloads_in_flight() override { ++keeps; }
    bool migrate() override { return std::exchange(has_alternate_path, false); }
    void raise(AsyncEvent event) override { events.push_back(event); }
    void count(HwCounter counter) override { counters.count(counter); }

  private:
    [[nodiscard]] Grant open(std::uint32_t key, std::uint64_t address, std::uint64_t length,
                             AccessRights needed) const;

    QpAttributes& attributes_;
    std::uint32_t receives_taken_ = 0;
};

}  // namespace simverbs::test
