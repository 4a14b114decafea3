#include "tests/support/rings.hpp"

#include <algorithm>
#include <cstring>

namespace simverbs::test {

CompletionQueueRing::CompletionQueueRing(Host& host, std::uint32_t entries, std::uint32_t channel)
    : host_(host) {
    const CreateCqReply reply = host.must(CreateCq{.entries = entries, .channel = channel});
    handle_ = reply.handle;
    map(reply.ring.place, reply.entries);
}

void CompletionQueueRing::map(std::uint64_t address, std::uint32_t entries) {
    base_ = reinterpret_cast<std::byte*>(address);
    entries_ = entries;
}

CompletionRing& CompletionQueueRing::head() const {
    return *reinterpret_cast<CompletionRing*>(base_);
}

std::vector<Cqe> CompletionQueueRing::poll() {
    const auto* slots = reinterpret_cast<const Cqe*>(base_ + sizeof(CompletionRing));
    std::vector<Cqe> entries;
    while (waiting() > 0) {
        entries.push_back(slots[consumer_++ & (slots_for(entries_) - 1)]);
    }
    head().consumer.value.store(consumer_);
    return entries;
}

std::uint32_t CompletionQueueRing::waiting() const {
    return head().producer.value.load() - consumer_;
}

void CompletionQueueRing::arm(CqArm what) {
    head().arm.value.store(static_cast<std::uint32_t>(what));
}

int CompletionQueueRing::resize(std::uint32_t entries) {
    ResizeCq::Reply reply{};
    const int error = host_.ask(ResizeCq{.handle = handle_, .entries = entries}, reply);
    if (error == 0) {
        map(reply.ring.place, reply.entries);
        consumer_ = 0;
    }
    return error;
}

SendWqe encode(const Send& send, std::span<std::byte> tail) {
    SendWqe wqe;
    wqe.wr_id = send.wr_id;
    wqe.remote_address = send.remote_address;
    wqe.compare_add = send.compare_add;
    wqe.swap = send.swap;
    wqe.rkey = send.rkey;
    wqe.immediate = send.immediate;
    wqe.opcode = static_cast<std::uint8_t>(send.opcode);
    wqe.flags = static_cast<std::uint8_t>(send.flags.bits);
    if (send.opcode == WrOpcode::kBindMw) {
        put_binding(send.binding, wqe);
    } else if (send.opcode == WrOpcode::kFlush) {
        put_flush(send.flush, wqe);
    } else if (send.flags.contains(SendFlag::kInline)) {
        wqe.inline_length = static_cast<std::uint32_t>(send.inline_bytes.size());
        std::copy_n(send.inline_bytes.begin(), std::min(send.inline_bytes.size(), tail.size()),
                    tail.begin());
    } else {
        wqe.segment_count = static_cast<std::uint16_t>(send.segments.size());
        const auto bytes = std::as_bytes(std::span(send.segments));
        std::copy_n(bytes.begin(), std::min(bytes.size(), tail.size()), tail.begin());
    }
    return wqe;
}

QueuePairHandle::QueuePairHandle(Host& host, const CreateQpReply& reply)
    : host_(host),
      base_(reinterpret_cast<std::byte*>(reply.ring.place)),
      qpn_(reply.qpn),
      handle_(reply.handle),
      send_shape_(send_shape(reply.capacity)),
      receive_shape_(
          receive_queue_shape(reply.capacity.receive_requests, reply.capacity.receive_segments)) {}

QpState QueuePairHandle::state() const {
    return static_cast<QpState>(rings().state.value.load());
}

QueryQpReply QueuePairHandle::query() const {
    return host_.must(QueryQp{.handle = handle_});
}

int QueuePairHandle::modify(QpAttrs given, QpValues values) const {
    ModifyQpReply reply;
    const int error =
        host_.ask(ModifyQp{.handle = handle_, .mask = given.bits, .values = values}, reply);
    if (error == 0 && state() == QpState::kReset) {
        sends_ = receives_ = 0;  // the device has set both indices back
    }
    return error;
}

int QueuePairHandle::modify_to(QpState state, QpAttrs others, QpValues values) const {
    values.state = static_cast<std::uint32_t>(state);
    return modify(others | QpAttr::kState, values);
}

void QueuePairHandle::destroy() {
    EXPECT_EQ(host_.ask(DestroyQp{.handle = handle_}), 0);
}

void QueuePairHandle::post(const Send& send) {
    post(std::span(&send, 1));
}

void QueuePairHandle::post(std::span<const Send> sends) {
    for (const Send& send : sends) {
        write_send(send);
    }
    write_send_producer(sends_);
    ring_doorbell(true, sends_);
}

void QueuePairHandle::write_send(const Send& send) {
    std::byte* slot = base_ + sizeof(QueuePairRings) +
                      std::size_t{sends_ & (send_shape_.slots - 1)} * send_shape_.stride;
    const SendWqe wqe =
        encode(send, std::span(slot + sizeof(SendWqe), send_shape_.stride - sizeof(SendWqe)));
    std::memcpy(slot, &wqe, sizeof wqe);
    ++sends_;
}

void QueuePairHandle::post_receive(std::uint64_t wr_id, const std::vector<Segment>& segments) {
    std::byte* slot = base_ + sizeof(QueuePairRings) + send_shape_.bytes() +
                      std::size_t{receives_ & (receive_shape_.slots - 1)} * receive_shape_.stride;
    const RecvWqe wqe{.wr_id = wr_id, .segment_count = static_cast<std::uint32_t>(segments.size())};
    std::memcpy(slot, &wqe, sizeof wqe);
    std::memcpy(
        slot + sizeof wqe, segments.data(),
        std::min<std::size_t>(segments.size(), receive_shape_.max_segments) * sizeof(Segment));
    rings().receive_producer.value.store(++receives_);
    ring_doorbell(false, receives_);
}

void QueuePairHandle::ring_doorbell(bool send, std::uint32_t producer) const {
    host_.attachment().ring({.context = host_.context(),
                             .qpn = qpn_,
                             .producer = producer,
                             .queue = send ? DoorbellQueue::kSend : DoorbellQueue::kReceive});
}

void QueuePairHandle::write_send_producer(std::uint32_t producer) const {
    rings().send_producer.value.store(producer);
}

std::vector<WcStatus> statuses(const std::vector<Cqe>& entries) {
    std::vector<WcStatus> result;
    result.reserve(entries.size());
    for (const Cqe& entry : entries) {
        result.push_back(static_cast<WcStatus>(entry.status));
    }
    return result;
}

std::vector<std::uint64_t> ids(const std::vector<Cqe>& entries) {
    std::vector<std::uint64_t> result;
    result.reserve(entries.size());
    for (const Cqe& entry : entries) {
        result.push_back(entry.wr_id);
    }
    return result;
}

}  // namespace simverbs::test
