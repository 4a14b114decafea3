#include "replicated_log.hpp"

#include <algorithm>

namespace replicated_log {
namespace {

constexpr std::uint32_t kWritesAtOnce = 16;  // to each replica
constexpr int kCompletions = 512;            // of all replicas: 32 of them

std::uint64_t check_of(const Entry& entry) {
    std::uint64_t hash = 14695981039346656037U;
    const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
    mix(entry.index);
    mix(entry.committed);
    mix(entry.bytes);
    for (std::size_t i = 0; i < std::min<std::size_t>(entry.bytes, kEntryBytes); ++i) {
        mix(static_cast<unsigned char>(entry.text[i]));
    }
    return hash;
}

bool is_whole(const Entry& entry, std::size_t index) {
    return entry.index == index && entry.check == check_of(entry);
}

}  // namespace

Replica::Replica(ibv_context* device, std::size_t capacity)
    : log_(capacity),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, 1, nullptr, nullptr, 0), "ibv_create_cq")),
      mr_(register_memory(pd_.get(), log_.data(), log_.size() * sizeof(Entry),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)),
      qp_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, 1)) {}

Place Replica::place() const {
    return {reinterpret_cast<std::uintptr_t>(log_.data()), mr_->rkey};
}

std::size_t Replica::entries() const {
    std::size_t count = 0;
    while (count < log_.size() && is_whole(log_[count], count)) {
        ++count;
    }
    return count;
}

std::size_t Replica::committed() const {
    const std::size_t count = entries();
    return count == 0 ? 0 : log_[count - 1].committed;
}

std::string_view Replica::at(std::size_t index) const {
    return {log_[index].text.data(), log_[index].bytes};
}

const char* name_of(Outcome outcome) {
    switch (outcome) {
        case Outcome::kCommitted:
            return "committed";
        case Outcome::kNoQuorum:
            return "no quorum";
        case Outcome::kFull:
            return "full";
    }
    return "unknown";
}

Leader::Leader(ibv_context* device, const LeaderOptions& options)
    : options_(options),
      log_(options.capacity),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, kCompletions, nullptr, nullptr, 0), "ibv_create_cq")),
      mr_(register_memory(pd_.get(), log_.data(), log_.size() * sizeof(Entry),
                          IBV_ACCESS_LOCAL_WRITE)) {}

std::size_t Leader::add_replica(const Place& place) {
    peers_.push_back({place, make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, kWritesAtOnce)});
    return peers_.size() - 1;
}

Outcome Leader::append(std::string_view text) {
    if (text.size() > kEntryBytes || size_ == log_.size()) {
        return Outcome::kFull;
    }
    const std::size_t index = size_++;
    Entry& entry = log_[index];
    entry.index = index;
    entry.committed = committed_;
    entry.bytes = text.size();
    std::ranges::copy(text, entry.text.begin());
    entry.check = check_of(entry);
    while (replicas_with(index) < quorum()) {
        if (replicas_alive() < quorum()) {
            return Outcome::kNoQuorum;
        }
        post_entries();
        poll();
    }
    committed_ = size_;
    return Outcome::kCommitted;
}

void Leader::rejoin(std::size_t replica) {
    poll();  // what is left of the connection before
    Peer& peer = peers_[replica];
    peer.is_alive = true;
    peer.posted = peer.acknowledged;  // writing an entry twice does no harm
}

void Leader::flush() {
    const auto lacks_entries = [this](const Peer& peer) {
        return peer.is_alive && peer.acknowledged < size_;
    };
    while (std::ranges::any_of(peers_, lacks_entries)) {
        post_entries();
        poll();
    }
}

void Leader::post_entries() {
    for (std::size_t replica = 0; replica < peers_.size(); ++replica) {
        Peer& peer = peers_[replica];
        while (peer.is_alive && peer.posted < size_ &&
               peer.posted - peer.acknowledged < kWritesAtOnce) {
            post(replica);
        }
    }
}

void Leader::post(std::size_t replica) {
    Peer& peer = peers_[replica];
    ibv_sge piece = piece_of(*mr_, &log_[peer.posted], sizeof(Entry));
    ibv_send_wr request{};
    request.wr_id = replica;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = peer.place.address + peer.posted * sizeof(Entry);
    request.wr.rdma.rkey = peer.place.rkey;
    ibv_send_wr* bad = nullptr;
    peer.is_alive = ibv_post_send(peer.qp.get(), &request, &bad) == 0;
    ++peer.posted;
}

// WRITEs of a queue pair complete in their order, so each one acknowledges the next entry.
void Leader::poll() {
    ibv_wc completion{};
    while (ibv_poll_cq(cq_.get(), 1, &completion) == 1) {
        Peer& peer = peers_[completion.wr_id];
        if (completion.status == IBV_WC_SUCCESS) {
            ++peer.acknowledged;
        } else {
            peer.is_alive = false;
        }
    }
}

std::size_t Leader::replicas_with(std::size_t index) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(peers_, [&](const Peer& peer) { return peer.acknowledged > index; }));
}

std::size_t Leader::replicas_alive() const {
    return static_cast<std::size_t>(std::ranges::count_if(peers_, &Peer::is_alive));
}

std::size_t Leader::quorum() const {
    return options_.acknowledgements != 0 ? options_.acknowledgements : (peers_.size() + 1) / 2;
}

}  // namespace replicated_log
