#include "simverbs/transport/send_window.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"

namespace simverbs {

SendWindow::SendWindow(const WorkQueueShape& shape)
    : shape_(shape),
      tail_bytes_(shape.stride > sizeof(SendWqe)
                      ? shape.stride - static_cast<std::uint32_t>(sizeof(SendWqe))
                      : 0) {}

void SendWindow::set_posted(std::uint32_t producer) {
    const std::uint32_t ahead = producer - posted_;
    const std::uint32_t room = shape_.slots - (posted_ - head_);
    posted_ += ahead <= room ? ahead : 0;
}

SendRequest& SendWindow::fetch(Effects& effects) {
    SIMVERBS_ASSERT(fetched_ != posted_, "fetched past the posted work requests");
    const std::uint32_t index = fetched_++;
    SendRequest& request = at(index);
    request = SendRequest{};
    const FetchVerdict verdict = effects.fetch_send(index, request.wqe, tail(index));
    request.failure = verdict.failure;
    request.cause = verdict.cause;
    return request;
}

void SendWindow::pop_head() {
    SIMVERBS_ASSERT(head_ != posted_, "completed a request that was not posted");
    ++head_;
    if (static_cast<std::int32_t>(fetched_ - head_) < 0) {
        fetched_ = head_;
    }
}

void SendWindow::reset(std::uint32_t index) {
    head_ = index;
    fetched_ = index;
    posted_ = index;
}

void SendWindow::resize(const WorkQueueShape& shape) {
    SendWindow moved(shape);
    for (std::uint32_t index = head_; index != fetched_; ++index) {
        const std::span<std::byte> from = tail(index);
        const std::span<std::byte> to = moved.tail(index);
        moved.at(index) = at(index);
        std::ranges::copy(from, to.begin());
        std::ranges::copy(spans(index), moved.spans(index).begin());
        MemorySpan& first = moved.spans(index)[0];
        if (first.address == reinterpret_cast<std::uint64_t>(from.data())) {  // inline
            first.address = reinterpret_cast<std::uint64_t>(to.data());
        }
    }
    shape_ = shape;
    chunks_ = std::move(moved.chunks_);
}

SendRequest& SendWindow::at(std::uint32_t index) {
    return chunk(index).requests[slot(index) % kChunkRequests];
}

std::span<std::byte> SendWindow::tail(std::uint32_t index) {
    const std::size_t place = slot(index) % kChunkRequests;
    return std::span(chunk(index).tails).subspan(place * tail_bytes_, tail_bytes_);
}

std::span<MemorySpan> SendWindow::spans(std::uint32_t index) {
    const std::size_t place = slot(index) % kChunkRequests;
    const std::size_t count = std::max(1U, shape_.max_segments);
    return std::span(chunk(index).spans).subspan(place * count, count);
}

SendWindow::Chunk& SendWindow::chunk(std::uint32_t index) {
    if (chunks_.empty()) [[unlikely]] {
        chunks_.resize((shape_.slots + kChunkRequests - 1) / kChunkRequests);
    }
    std::unique_ptr<Chunk>& chunk = chunks_[slot(index) / kChunkRequests];
    if (chunk == nullptr) {
        chunk = std::make_unique<Chunk>();
        const std::size_t requests = std::min(kChunkRequests, shape_.slots);
        chunk->requests.resize(requests);
        chunk->spans.resize(requests * std::max(1U, shape_.max_segments));
        chunk->tails.resize(requests * tail_bytes_);
    }
    return *chunk;
}

}  // namespace simverbs
