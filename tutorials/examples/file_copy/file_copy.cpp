#include "file_copy.hpp"

#include <atomic>
#include <cstring>

#include <arpa/inet.h>

namespace file_copy {
namespace {

constexpr std::uint64_t kProbeId = ~0ULL;  // wr_id of requests that carry no chunk
constexpr std::uint32_t kChunk = 0;        // immediate data
constexpr std::uint32_t kEnd = 1;          // the last message: a Trailer

// FNV-1a over what has been copied so far.
struct Trailer {
    std::uint64_t check = 14695981039346656037U;
    std::uint64_t bytes = 0;
    std::uint64_t read_failed = 0;

    void add(const char* data, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) {
            check = (check ^ static_cast<unsigned char>(data[i])) * 1099511628211U;
        }
        bytes += length;
    }
};

// A word that a device may write at any time.
std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load();
}

}  // namespace

const char* name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kCopied:
            return "copied";
        case Outcome::kReadFailed:
            return "read failed";
        case Outcome::kWriteFailed:
            return "write failed";
        case Outcome::kCorrupt:
            return "corrupt";
        case Outcome::kLost:
            return "lost";
    }
    return "unknown";
}

// ---- the sender --------------------------------------------------------------------------------

Sender::Sender(ibv_context* device, const Options& options)
    : options_(options),
      chunks_(options.chunk * options.window),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, static_cast<int>(options.window) + 1, nullptr, nullptr, 0),
              "ibv_create_cq")),
      chunks_mr_(register_memory(pd_.get(), chunks_.data(), chunks_.size(), 0)),
      feedback_mr_(register_memory(pd_.get(), &feedback_, sizeof feedback_,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)),
      qp_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, options.window + 1)) {}

FeedbackPlace Sender::feedback_place() const {
    return {reinterpret_cast<std::uintptr_t>(&feedback_), feedback_mr_->rkey};
}

std::uint64_t Sender::granted() const {
    return load(feedback_.granted);
}
std::uint64_t Sender::verdict() const {
    return load(feedback_.verdict);
}

bool Sender::may_send() const {
    return sent_ - completed_ < options_.window &&
           (!options_.waits_for_credits || sent_ < granted());
}

Outcome Sender::send(std::istream& file) {
    Trailer trailer;
    bool is_end = false;
    while (verdict() == 0) {
        if (is_end || !may_send()) {
            if (!wait()) {
                return Outcome::kLost;
            }
            continue;
        }
        char* const slot = &chunks_[(sent_ % options_.window) * options_.chunk];
        file.read(slot, static_cast<std::streamsize>(options_.chunk));
        const auto bytes = static_cast<std::size_t>(file.gcount());
        trailer.add(slot, bytes);
        is_end = bytes == 0;
        if (is_end) {
            trailer.read_failed = file.bad() ? 1 : 0;
            std::memcpy(slot, &trailer, sizeof trailer);
        }
        if (!post(is_end ? sizeof trailer : bytes, is_end)) {
            return Outcome::kLost;
        }
    }
    return static_cast<Outcome>(verdict());
}

bool Sender::post(std::size_t bytes, bool is_end) {
    const std::size_t slot = sent_ % options_.window;
    ibv_sge piece = piece_of(*chunks_mr_, &chunks_[slot * options_.chunk], bytes);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND_WITH_IMM;
    request.imm_data = htonl(is_end ? kEnd : kChunk);
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    ++sent_;
    return ibv_post_send(qp_.get(), &request, &bad) == 0;
}

bool Sender::poll() {
    ibv_wc completion{};
    const int polled = ibv_poll_cq(cq_.get(), 1, &completion);
    if (polled <= 0) {
        return polled == 0;
    }
    if (completion.wr_id == kProbeId) {
        is_probing_ = false;
    } else {
        ++completed_;
    }
    return completion.status == IBV_WC_SUCCESS;
}

bool Sender::wait() {
    if (sent_ == completed_ && !is_probing_) {
        ibv_send_wr request{};  // a WRITE of no bytes needs neither a key nor a receive
        request.wr_id = kProbeId;
        request.opcode = IBV_WR_RDMA_WRITE;
        ibv_send_wr* bad = nullptr;
        is_probing_ = ibv_post_send(qp_.get(), &request, &bad) == 0;
        if (!is_probing_) {
            return false;
        }
    }
    return poll();
}

// ---- the receiver ------------------------------------------------------------------------------

Receiver::Receiver(ibv_context* device, const FeedbackPlace& sender, const Options& options)
    : options_(options),
      sender_(sender),
      chunks_(options.chunk * options.window),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, static_cast<int>(options.window) + 1, nullptr, nullptr, 0),
              "ibv_create_cq")),
      chunks_mr_(
          register_memory(pd_.get(), chunks_.data(), chunks_.size(), IBV_ACCESS_LOCAL_WRITE)),
      feedback_mr_(register_memory(pd_.get(), &feedback_, sizeof feedback_, 0)),
      qp_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, options.window)) {}

void Receiver::begin() {
    for (std::size_t slot = 0; slot < options_.window; ++slot) {
        require(
            post_receive(qp_.get(), slot,
                         piece_of(*chunks_mr_, &chunks_[slot * options_.chunk], options_.chunk)),
            "ibv_post_recv");
    }
    feedback_.granted = options_.window;
}

// A WRITE of feedback is always under way: it carries credits, and finds a sender that is gone.
Outcome Receiver::receive(std::ostream& file) {
    Trailer copied;
    for (;;) {
        if (!is_feedback_under_way_ && !write_feedback()) {
            return Outcome::kLost;
        }
        const Arrival arrival = poll();
        if (arrival == Arrival::kLost) {
            return Outcome::kLost;
        }
        if (arrival == Arrival::kNone) {
            continue;
        }
        const std::uint64_t slot = completion_.wr_id;
        char* const data = &chunks_[slot * options_.chunk];
        if (ntohl(completion_.imm_data) == kEnd) {
            Trailer sent;
            std::memcpy(&sent, data, sizeof sent);
            const bool is_same = sent.check == copied.check && sent.bytes == copied.bytes;
            file.flush();
            return finish(sent.read_failed != 0 ? Outcome::kReadFailed
                          : !file               ? Outcome::kWriteFailed
                          : is_same             ? Outcome::kCopied
                                                : Outcome::kCorrupt);
        }
        copied.add(data, completion_.byte_len);
        if (!file.write(data, completion_.byte_len)) {
            return finish(Outcome::kWriteFailed);
        }
        if (post_receive(qp_.get(), slot, piece_of(*chunks_mr_, data, options_.chunk)) != 0) {
            return Outcome::kLost;
        }
        ++feedback_.granted;
    }
}

Receiver::Arrival Receiver::poll() {
    const int polled = ibv_poll_cq(cq_.get(), 1, &completion_);
    if (polled == 0) {
        return Arrival::kNone;
    }
    if (polled < 0 || completion_.status != IBV_WC_SUCCESS) {
        return Arrival::kLost;
    }
    if (completion_.wr_id == kProbeId) {
        is_feedback_under_way_ = false;
        return Arrival::kNone;
    }
    return Arrival::kChunk;
}

bool Receiver::write_feedback() {
    ibv_sge piece = piece_of(*feedback_mr_, &feedback_, sizeof feedback_);
    ibv_send_wr request{};
    request.wr_id = kProbeId;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = sender_.address;
    request.wr.rdma.rkey = sender_.rkey;
    ibv_send_wr* bad = nullptr;
    is_feedback_under_way_ = ibv_post_send(qp_.get(), &request, &bad) == 0;
    return is_feedback_under_way_;
}

// Tells the sender, and waits until it is told.
Outcome Receiver::finish(Outcome outcome) {
    while (is_feedback_under_way_) {
        if (poll() == Arrival::kLost) {
            return Outcome::kLost;
        }
    }
    feedback_.verdict = static_cast<std::uint64_t>(outcome);
    bool is_told = write_feedback();
    while (is_told && is_feedback_under_way_) {
        is_told = poll() != Arrival::kLost;
    }
    return is_told ? outcome : Outcome::kLost;
}

}  // namespace file_copy
