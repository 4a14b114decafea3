#include "heartbeat.hpp"

#include <atomic>

#include <poll.h>

namespace heartbeat {
namespace {

constexpr std::uint32_t kWritesAtOnce = 8;  // to each peer

// Returns true when ibv_get_async_event() has something, and would not block.
bool has_event(const ibv_context& device) {
    pollfd descriptor{.fd = device.async_fd, .events = POLLIN, .revents = 0};
    return ::poll(&descriptor, 1, 0) == 1;
}

}  // namespace

const char* name_of(Health health) {
    return health == Health::kAlive ? "alive" : "suspected";
}

Node::Node(ibv_context* device, std::size_t self, std::size_t nodes, const Options& options)
    : device_(device),
      self_(self),
      options_(options),
      counts_(nodes),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, static_cast<int>(nodes * kWritesAtOnce), nullptr, nullptr, 0),
              "ibv_create_cq")),
      mr_(register_memory(pd_.get(), counts_.data(), nodes * sizeof(std::uint64_t),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)),
      peers_(nodes) {
    for (std::size_t peer = 0; peer < nodes; ++peer) {
        if (peer != self_) {
            peers_[peer].qp = make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_UC, kWritesAtOnce);
        }
    }
}

Place Node::place(std::size_t peer) const {
    return {reinterpret_cast<std::uintptr_t>(&counts_[peer]), mr_->rkey};
}

void Node::begin(std::chrono::nanoseconds now) {
    next_beat_ = now;
    for (Peer& peer : peers_) {
        peer.changed_at = now;
    }
}

void Node::tick(std::chrono::nanoseconds now) {
    take_events(now);
    if (now >= next_beat_) {
        next_beat_ = now + options_.period;
        beat();
    }
    if (!is_cut_off_) {
        look(now);
    }
}

void Node::take_events(std::chrono::nanoseconds now) {
    ibv_async_event event{};
    while (has_event(*device_) && ibv_get_async_event(device_, &event) == 0) {
        const bool is_of_port = event.element.port_num == options_.port;
        if (event.event_type == IBV_EVENT_PORT_ERR && is_of_port) {
            is_cut_off_ = true;
        }
        if (event.event_type == IBV_EVENT_PORT_ACTIVE && is_of_port) {
            is_cut_off_ = false;
            begin(now);  // peers have had no way to reach this node
        }
        ibv_ack_async_event(&event);
    }
}

void Node::beat() {
    // Completions make room for further WRITEs, and say no more than that. A poll of a queue that
    // must be empty would be a waste, and lets virtual time go on to the next event.
    ibv_wc completion{};
    while (outstanding_ > 0 && ibv_poll_cq(cq_.get(), 1, &completion) == 1) {
        --outstanding_;
    }
    std::atomic_ref(counts_[self_]).fetch_add(1);
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
        if (peer != self_) {
            write_count(peers_[peer]);
        }
    }
}

// The device may take the count of a later heartbeat, which does as well. A WRITE that cannot be
// posted is a lost heartbeat.
void Node::write_count(const Peer& peer) {
    ibv_sge piece = piece_of(*mr_, &counts_[self_], sizeof(std::uint64_t));
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = peer.place.address;
    request.wr.rdma.rkey = peer.place.rkey;
    ibv_send_wr* bad = nullptr;
    outstanding_ += ibv_post_send(peer.qp.get(), &request, &bad) == 0 ? 1 : 0;
}

void Node::look(std::chrono::nanoseconds now) {
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        Peer& peer = peers_[i];
        const std::uint64_t count = std::atomic_ref(counts_[i]).load();
        if (count != peer.count) {
            peer.count = count;
            peer.changed_at = now;
        }
        const bool is_silent = now - peer.changed_at > options_.misses * options_.period;
        peer.health = is_silent && i != self_ ? Health::kSuspected : Health::kAlive;
    }
}

}  // namespace heartbeat
