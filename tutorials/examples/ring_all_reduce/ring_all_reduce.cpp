#include "ring_all_reduce.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include <arpa/inet.h>

namespace ring {
namespace {

constexpr std::uint32_t kAbort = 0xFFFFFFFF;  // as immediate data, in place of a step
constexpr std::uint64_t kAbortId = 1;         // wr_id of its SEND

int post_abort(ibv_qp* qp) {
    ibv_send_wr request{};
    request.wr_id = kAbortId;
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(kAbort);
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &request, &bad);
}

}  // namespace

Rank::Rank(ibv_context* device, std::size_t rank, std::size_t ranks, const RingOptions& options)
    : rank_(rank),
      ranks_(ranks),
      options_(options),
      memory_((ranks + 2 * (ranks - 1)) * options.chunk),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, static_cast<int>(8 * ranks), nullptr, nullptr, 0),
              "ibv_create_cq")),
      mr_(register_memory(pd_.get(), memory_.data(), memory_.size() * sizeof(std::int64_t),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)),
      left_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC,
                            static_cast<std::uint32_t>(2 * steps() + 1))),
      right_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, 2)) {}

Landing Rank::landing() const {
    return {reinterpret_cast<std::uintptr_t>(memory_.data() + ranks_ * options_.chunk), mr_->rkey};
}

// The left neighbour is at most one all_reduce() ahead: twice its steps, and one to say that a
// rank is lost. The right one only ever says that.
void Rank::begin() {
    for (std::size_t i = 0; i < 2 * steps() + 1; ++i) {
        require(post_receive(left_.get(), 0, piece_of(*mr_, memory_.data(), 0)), "ibv_post_recv");
    }
    require(post_receive(right_.get(), 0, piece_of(*mr_, memory_.data(), 0)), "ibv_post_recv");
}

std::span<std::int64_t> Rank::chunk(std::size_t number) {
    return std::span(memory_).subspan((number % ranks_) * options_.chunk, options_.chunk);
}

std::span<std::int64_t> Rank::landed(std::size_t step) {
    return std::span(memory_).subspan((ranks_ + step) * options_.chunk, options_.chunk);
}

// A place of a step is written again by the next all_reduce(). By then it has been read: what the
// left neighbour needs to get there has passed through this rank.
Outcome Rank::all_reduce(std::span<std::int64_t> values) {
    if (values.size() > ranks_ * options_.chunk) {
        throw std::invalid_argument("all_reduce: more values than ranks * chunk");
    }
    std::fill_n(memory_.begin(), ranks_ * options_.chunk, 0);
    std::ranges::copy(values, memory_.begin());
    for (std::size_t step = 0; step < steps(); ++step) {
        const bool is_sum = step < ranks_ - 1;  // then whole sums go round
        const std::size_t sent = rank_ + (is_sum ? 0 : 1) + steps() * ranks_ - step % (ranks_ - 1);
        if (!exchange(step, sent)) {
            return Outcome::kPeerLost;
        }
        const auto from = landed(step);
        const auto to = chunk(sent - 1);
        if (is_sum) {
            std::ranges::transform(from, to, to.begin(), std::plus<>());
        } else {
            std::ranges::copy(from, to.begin());
        }
    }
    steps_sent_ -= steps();
    steps_received_ -= steps();
    std::copy_n(memory_.begin(), values.size(), values.begin());
    return Outcome::kDone;
}

bool Rank::exchange(std::size_t step, std::size_t sent_chunk) {
    ibv_sge piece = piece_of(*mr_, chunk(sent_chunk).data(), options_.chunk * sizeof(std::int64_t));
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.imm_data = htonl(static_cast<std::uint32_t>(step));
    request.wr.rdma.remote_addr = right_landing_.address + step * piece.length;
    request.wr.rdma.rkey = right_landing_.rkey;
    ibv_send_wr* bad = nullptr;
    is_lost_ = is_lost_ || ibv_post_send(right_.get(), &request, &bad) != 0;
    while (!is_lost_ && (steps_sent_ <= step || steps_received_ <= step)) {
        is_lost_ = !poll();
    }
    if (is_lost_ && options_.tell_peers) {
        abort();
    }
    return !is_lost_;
}

// Takes a completion, if there is one. Returns false when a rank is lost.
bool Rank::poll() {
    ibv_wc completion{};
    const int polled = ibv_poll_cq(cq_.get(), 1, &completion);
    if (polled <= 0) {
        return polled == 0;
    }
    if (completion.status != IBV_WC_SUCCESS) {
        return false;
    }
    if (completion.opcode != IBV_WC_RECV_RDMA_WITH_IMM && completion.opcode != IBV_WC_RECV) {
        ++steps_sent_;
        return true;
    }
    if (ntohl(completion.imm_data) == kAbort) {
        return false;
    }
    ++steps_received_;
    return post_receive(left_.get(), 0, piece_of(*mr_, memory_.data(), 0)) == 0;
}

// Waits until both neighbours know, or are known to be gone.
void Rank::abort() {
    int waits = 0;
    for (ibv_qp* const qp : {left_.get(), right_.get()}) {
        waits += post_abort(qp) == 0 ? 1 : 0;
    }
    ibv_wc completion{};
    while (waits > 0) {
        const int polled = ibv_poll_cq(cq_.get(), 1, &completion);
        if (polled < 0) {
            return;
        }
        waits -= polled == 1 && completion.wr_id == kAbortId ? 1 : 0;
    }
    options_.tell_peers = false;  // once is enough
}

}  // namespace ring
