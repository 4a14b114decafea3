#include "kv_store.hpp"

#include <algorithm>

namespace kv {
namespace {

constexpr std::uint64_t kFnvBasis = 14695981039346656037U;
constexpr std::uint64_t kFnvPrime = 1099511628211U;

std::uint64_t hash_of(std::string_view text, std::uint64_t hash = kFnvBasis) {
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
    }
    return hash;
}

std::string_view key_of(const Slot& slot) {
    return {slot.key.data(), std::min<std::size_t>(slot.key_bytes, kKeyBytes)};
}
std::string_view value_of(const Slot& slot) {
    return {slot.value.data(), std::min<std::size_t>(slot.value_bytes, kValueBytes)};
}

// An empty slot, which is all zero, has the check 0.
std::uint64_t check_of(const Slot& slot) {
    return slot.key_bytes == 0
               ? 0
               : hash_of(value_of(slot), hash_of(key_of(slot), slot.value_bytes + kFnvBasis));
}

}  // namespace

Server::Server(ibv_context* device, std::uint32_t slots)
    : slots_(slots),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, 1, nullptr, nullptr, 0), "ibv_create_cq")),
      mr_(register_memory(pd_.get(), slots_.data(), slots_.size() * sizeof(Slot),
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)) {}

ibv_qp* Server::add_client() {
    clients_.push_back(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, 1));
    return clients_.back().get();
}

Table Server::table() const {
    return {reinterpret_cast<std::uintptr_t>(slots_.data()), mr_->rkey,
            static_cast<std::uint32_t>(slots_.size())};
}

bool Server::put(std::string_view key, std::string_view value) {
    if (key.empty() || key.size() > kKeyBytes || value.size() > kValueBytes) {
        return false;
    }
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
        Slot& slot = slots_[(hash_of(key) + probe) % slots_.size()];
        if (slot.key_bytes != 0 && key_of(slot) != key) {
            continue;
        }
        slot.key_bytes = static_cast<std::uint32_t>(key.size());
        slot.value_bytes = static_cast<std::uint32_t>(value.size());
        std::ranges::copy(key, slot.key.begin());
        std::ranges::copy(value, slot.value.begin());
        slot.check = check_of(slot);
        return true;
    }
    return false;
}

Client::Client(ibv_context* device, const Table& table, const ClientOptions& options)
    : table_(table),
      options_(options),
      pd_(own(ibv_alloc_pd(device), "ibv_alloc_pd")),
      cq_(own(ibv_create_cq(device, 1, nullptr, nullptr, 0), "ibv_create_cq")),
      mr_(register_memory(pd_.get(), &slot_, sizeof slot_, IBV_ACCESS_LOCAL_WRITE)),
      qp_(make_queue_pair(pd_.get(), cq_.get(), IBV_QPT_RC, 1)) {}

Answer Client::get(std::string_view key) {
    Answer answer{Outcome::kNotFound, {}};
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
        answer.outcome = read_whole((hash_of(key) + probe) % table_.slots, answer.status);
        if (answer.outcome != Outcome::kFound) {
            return answer;
        }
        if (key_of(slot_) == key) {
            answer.value = value_of(slot_);
            return answer;
        }
        answer.outcome = Outcome::kNotFound;
    }
    return answer;
}

Outcome Client::read_whole(std::uint64_t slot, ibv_wc_status& status) {
    for (int i = 0; i < options_.attempts; ++i) {
        status = read(slot);
        if (status != IBV_WC_SUCCESS) {
            return Outcome::kUnreachable;
        }
        if (!options_.verify || slot_.check == check_of(slot_)) {
            return slot_.key_bytes == 0 ? Outcome::kNotFound : Outcome::kFound;
        }
    }
    return Outcome::kTorn;
}

ibv_wc_status Client::read(std::uint64_t slot) {
    ibv_sge piece = piece_of(*mr_, &slot_, sizeof slot_);
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_READ;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = table_.address + slot * sizeof(Slot);
    request.wr.rdma.rkey = table_.rkey;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(qp_.get(), &request, &bad) != 0) {
        return IBV_WC_GENERAL_ERR;
    }
    ibv_wc completion{};
    int polled = 0;
    while ((polled = ibv_poll_cq(cq_.get(), 1, &completion)) == 0) {
    }
    return polled < 0 ? IBV_WC_GENERAL_ERR : completion.status;
}

}  // namespace kv
