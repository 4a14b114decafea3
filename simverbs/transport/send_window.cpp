#include "simverbs/transport/send_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "fabric/core/assert.hpp"

namespace simverbs {

SendWindow::SendWindow(const WorkQueueShape& shape) {
    set_shape(shape);
}

void SendWindow::set_shape(const WorkQueueShape& shape) {
    shape_ = room_ = shape;
    if (admits_device_work_) {
        constexpr auto kLeast = static_cast<std::uint32_t>(sizeof(DeviceWork));
        room_.slots = std::bit_ceil(std::max(shape.slots + kDeviceRoom, fetched_ - head_));
        room_.stride = std::max(shape.stride, kLeast);
    }
    constexpr auto kHead = static_cast<std::uint32_t>(sizeof(SendWqe));
    tail_bytes_ = room_.stride > kHead ? room_.stride - kHead : 0;
    spans_each_ = std::max(1U, room_.max_segments);
}

void SendWindow::admit_device_work() {
    SIMVERBS_ASSERT(chunks_.empty(), "the send window is in use");
    admits_device_work_ = true;
    set_shape(shape_);
}

void SendWindow::set_posted(std::uint32_t producer) {
    const std::uint32_t ahead = producer - posted_slots_;
    const std::uint32_t room = shape_.slots - (posted_slots_ - done_slots_);
    posted_slots_ += ahead <= room ? ahead : 0;
}

void SendWindow::add(const DeviceWork& request) {
    SIMVERBS_ASSERT(admits_device_work_, "the send window has no room for the device");
    waiting_.push_back(request);
    ++waiting_count_;
}

SendRequest& SendWindow::fetch(QueueEffects& effects) {
    SIMVERBS_ASSERT(fetched_ != posted(), "fetched past the posted work requests");
    if (waiting_count_ > 0) [[unlikely]] {
        const std::uint32_t index = fetched_++;
        SendRequest& request = enter(index);
        request = SendRequest{};
        request.wqe = waiting_.front().wqe;
        request.of_device = true;
        std::ranges::copy(waiting_.front().tail, tail(index).begin());
        waiting_.erase(waiting_.begin());
        --waiting_count_;
        return request;
    }
    const std::uint32_t index = fetched_++;
    SendRequest& request = enter(index);
    request = SendRequest{};
    request.slot = fetched_slots_++;
    const std::size_t tail_of_slot = shape_.stride - sizeof(SendWqe);
    const FetchVerdict verdict =
        effects.fetch_send(request.slot, request.wqe, tail(index).first(tail_of_slot));
    request.failure = verdict.failure;
    request.cause = verdict.cause;
    return request;
}

void SendWindow::pop_head() {
    SIMVERBS_ASSERT(head_ != fetched_, "completed a request that was not fetched");
    done_slots_ += at(head_).of_device ? 0 : 1;
    ++head_;
}

void SendWindow::resize(const WorkQueueShape& shape) {
    SendWindow moved(shape);
    moved.admits_device_work_ = admits_device_work_;
    moved.head_ = head_;
    moved.fetched_ = fetched_;
    moved.set_shape(shape);
    for (std::uint32_t index = head_; index != fetched_; ++index) {
        moved.enter(index) = at(index);
        const std::span<std::byte> from = tail(index);
        const std::span<std::byte> to = moved.tail(index);
        std::ranges::copy(from, to.begin());
        std::ranges::copy(spans(index), moved.spans(index).begin());
        MemorySpan& first = moved.spans(index)[0];
        if (first.address == reinterpret_cast<std::uint64_t>(from.data())) {  // inline
            first.address = reinterpret_cast<std::uint64_t>(to.data());
        }
    }
    set_shape(shape);
    chunks_ = std::move(moved.chunks_);
}

SendRequest& SendWindow::enter(std::uint32_t index) {
    if (chunks_.empty()) [[unlikely]] {
        chunks_.resize((room_.slots + kChunkRequests - 1) / kChunkRequests);
    }
    std::unique_ptr<Chunk>& chunk = chunks_[slot(index) / kChunkRequests];
    if (chunk == nullptr) [[unlikely]] {
        chunk = std::make_unique<Chunk>();
        const std::size_t requests = std::min(kChunkRequests, room_.slots);
        chunk->requests.resize(requests);
        chunk->spans.resize(requests * spans_each_);
        chunk->tails.resize(requests * tail_bytes_);
    }
    return at(index);
}

}  // namespace simverbs
