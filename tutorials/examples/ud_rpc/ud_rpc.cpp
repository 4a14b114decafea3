#include "ud_rpc.hpp"

#include <algorithm>
#include <cstring>

namespace ud_rpc {
namespace {

constexpr std::uint32_t kQkey = 0x11111111;

void to_rts(ibv_qp* qp, std::uint8_t port) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port;
    attr.qkey = kQkey;
    require(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            "ibv_modify_qp to INIT");
    attr.qp_state = IBV_QPS_RTR;
    require(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp to RTR");
    attr.qp_state = IBV_QPS_RTS;
    require(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp to RTS");
}

}  // namespace

std::string_view Message::view() const {
    return {text.data(), std::min<std::size_t>(bytes, kTextBytes)};
}

bool Message::set(std::string_view new_text) {
    if (new_text.size() > kTextBytes) {
        return false;
    }
    bytes = static_cast<std::uint32_t>(new_text.size());
    std::ranges::copy(new_text, text.begin());
    return true;
}

Datagrams::Datagrams(ibv_context* device, std::uint8_t port)
    : port_(port),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, 2 * kDepth, nullptr, nullptr, 0), "ibv_create_cq")),
      arrivals_mr_(
          register_memory(pd_.get(), arrivals_.data(), sizeof arrivals_, IBV_ACCESS_LOCAL_WRITE)),
      departures_mr_(register_memory(pd_.get(), departures_.data(), sizeof departures_, 0)),
      qp_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_UD, kDepth)) {
    to_rts(qp_.get(), port_);
    for (std::size_t slot = 0; slot < kDepth; ++slot) {
        post_receive_of(slot);
    }
}

void Datagrams::post_receive_of(std::size_t slot) {
    require(
        post_receive(qp_.get(), slot, piece_of(*arrivals_mr_, &arrivals_[slot], sizeof(Arrival))),
        "ibv_post_recv");
}

std::optional<Datagrams::Received> Datagrams::receive() {
    Received received{};
    ibv_wc& completion = received.completion;
    while (ibv_poll_cq(cq_.get(), 1, &completion) == 1) {
        if ((completion.opcode & IBV_WC_RECV) == 0) {
            ++completed_;
            continue;
        }
        const std::size_t slot = completion.wr_id;
        const bool is_message =
            completion.status == IBV_WC_SUCCESS && completion.byte_len == sizeof(Arrival);
        if (is_message) {
            std::memcpy(&received.grh, arrivals_[slot].grh.data(), sizeof(ibv_grh));
            std::memcpy(&received.message, arrivals_[slot].message.data(), sizeof(Message));
        }
        post_receive_of(slot);
        if (is_message) {
            return received;
        }
    }
    return std::nullopt;
}

void Datagrams::send(ibv_ah* to, std::uint32_t qp_num, const Message& message) {
    if (sent_ - completed_ == kDepth) {
        return;
    }
    Message& departure = departures_[sent_ % kDepth];
    departure = message;
    ibv_sge piece = piece_of(*departures_mr_, &departure, sizeof departure);
    ibv_send_wr request{};
    request.opcode = IBV_WR_SEND;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.ud.ah = to;
    request.wr.ud.remote_qpn = qp_num;
    request.wr.ud.remote_qkey = kQkey;
    ibv_send_wr* bad = nullptr;
    sent_ += ibv_post_send(qp_.get(), &request, &bad) == 0 ? 1 : 0;
}

Owned<ibv_ah> Datagrams::sender_of(Received& received) {
    return own(ibv_create_ah_from_wc(pd_.get(), &received.completion, &received.grh, port_),
               "ibv_create_ah_from_wc");
}

void Server::serve() {
    while (auto received = datagrams_.receive()) {
        const Message& request = received->message;
        Caller& caller = callers_[request.client];
        if (caller.address == nullptr) {
            caller.address = datagrams_.sender_of(*received);
        }
        if (request.call < caller.answer.call) {
            continue;  // the network delivers a call late whose answer the client has
        }
        if (request.call > caller.answer.call || !remembers_answers_) {
            caller.answer.client = request.client;
            caller.answer.call = request.call;
            caller.answer.set(handler_(request.view()).substr(0, kTextBytes));
        }
        datagrams_.send(caller.address.get(), received->completion.src_qp, caller.answer);
    }
}

Client::Client(ibv_context* device, std::uint64_t number, ibv_ah_attr server,
               std::uint32_t server_qp_num, const ClientOptions& options)
    : options_(options),
      server_qp_num_(server_qp_num),
      datagrams_(device, server.port_num),
      server_(own(ibv_create_ah(datagrams_.pd(), &server), "ibv_create_ah")) {
    request_.client = number;
}

bool Client::call(std::string_view request, std::chrono::nanoseconds now) {
    if (state_ == State::kWaiting || !request_.set(request)) {
        return false;
    }
    ++request_.call;
    state_ = State::kWaiting;
    tries_left_ = options_.tries;
    again_at_ = now;
    poll(now);
    return true;
}

Client::State Client::poll(std::chrono::nanoseconds now) {
    while (auto received = datagrams_.receive()) {
        if (state_ == State::kWaiting && received->message.call == request_.call) {
            answer_ = received->message;
            state_ = State::kAnswered;
        }
    }
    if (state_ == State::kWaiting && now >= again_at_) {
        if (tries_left_-- == 0) {
            state_ = State::kTimedOut;
        } else {
            datagrams_.send(server_.get(), server_qp_num_, request_);
            again_at_ = now + options_.patience;
        }
    }
    return state_;
}

}  // namespace ud_rpc
