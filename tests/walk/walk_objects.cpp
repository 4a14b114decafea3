// Objects made and destroyed, with their users counted.
#include <cerrno>

#include <fcntl.h>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

constexpr std::size_t kMostOfAKind = 8;
constexpr std::uint32_t kAbsurd = 100'000'000;

// A destroying verb answers EBUSY while something uses the object, and 0 otherwise.
template <typename Object>
bool destroyed(int error, const Object& object, const char* what) {
    if (object.uses > 0) {
        require(error == EBUSY, what);
        return false;
    }
    if (error != 0) {
        fail(std::string(what) + ": errno " + std::to_string(error) + " though nothing uses it");
    }
    return true;
}

template <typename Object>
void erase(List<Object>& list, std::size_t at) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

void Walk::make_something(Host& host) {
    const auto room = [](const auto& list) { return list.size() < kMostOfAKind; };
    switch (random_.below(9)) {
        case 0:
            return host.domains.size() < 2 ? make_domain(host) : void();
        case 1:
            return room(host.regions) ? make_region(host) : void();
        case 2:
            return room(host.channels) ? make_channel(host) : void();
        case 3:
            return room(host.completions) ? make_completions(host) : void();
        case 4:
            return room(host.shared) ? make_shared(host) : void();
        case 5:
            return room(host.addresses) ? make_address(host) : void();
        case 6:
            return room(host.windows) ? make_window(host) : void();
        default:
            return room(host.pairs) ? make_pair(host) : void();
    }
}

void Walk::make_domain(Host& host) {
    ibv_pd* pd = ibv_alloc_pd(host.context);
    require(pd != nullptr, "ibv_alloc_pd");
    host.domains.push_back(std::make_unique<Domain>(Domain{pd}));
}

void Walk::make_region(Host& host) {
    Domain* domain = any(host.domains);
    if (domain == nullptr) {
        return;
    }
    const std::uint32_t slot = random_.below(Arena::kSlots);
    const std::uint32_t begin = random_.below(Arena::kUsableBytes / 2);
    const std::uint32_t length =
        random_.within(Arena::kUsableBytes / 4, Arena::kUsableBytes - begin);
    auto access = static_cast<int>(random_.below(32));  // windows may be bound to it with 16
    constexpr int kWrites =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (!random_.one_in(4)) {
        access |= kWrites | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
    }
    if (!Arena::writable(slot)) {
        access &= ~kWrites;
    }
    const bool remote_only = (access & kWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
    ibv_mr* mr = ibv_reg_mr(domain->pd, arena_.usable(slot) + begin, length, access);
    require((mr == nullptr) == remote_only, "remote writing needs local writing");
    if (mr != nullptr) {
        host.regions.push_back(std::make_unique<Region>(Region{mr, domain}));
        ++domain->uses;
    }
}

void Walk::make_channel(Host& host) {
    ibv_comp_channel* channel = ibv_create_comp_channel(host.context);
    require(channel != nullptr, "ibv_create_comp_channel");
    require(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    host.channels.push_back(std::make_unique<Channel>(Channel{channel}));
}

void Walk::make_completions(Host& host) {
    Channel* channel = random_.one_in(2) ? any(host.channels) : nullptr;
    const bool absurd = random_.one_in(16);
    const int entries = absurd ? (random_.one_in(2) ? 0 : static_cast<int>(kAbsurd))
                               : static_cast<int>(random_.within(8, 128));
    auto made = std::make_unique<Completions>(Completions{nullptr, channel});
    made->cq = ibv_create_cq(host.context, entries, made.get(),
                             channel == nullptr ? nullptr : channel->channel, 0);
    require((made->cq == nullptr) == absurd, "ibv_create_cq");
    if (absurd) {
        return;
    }
    require(made->cq->cqe >= entries, "fewer entries than asked for");
    if (channel != nullptr) {
        ++channel->uses;
    }
    host.completions.push_back(std::move(made));
}

void Walk::make_shared(Host& host) {
    Domain* domain = any(host.domains);
    if (domain == nullptr) {
        return;
    }
    const bool absurd = random_.one_in(16);
    ibv_srq_init_attr init{};
    init.attr.max_wr = absurd ? kAbsurd : random_.within(1, 32);
    init.attr.max_sge = random_.within(1, 4);
    ibv_srq* srq = ibv_create_srq(domain->pd, &init);
    require((srq == nullptr) == absurd, "ibv_create_srq");
    if (srq == nullptr) {
        return;
    }
    ++domain->uses;
    host.shared.push_back(std::make_unique<Shared>(
        Shared{srq, domain, &ledger_.open(QueueKind::kShared), init.attr.max_sge}));
}

void Walk::make_pair(Host& host) {
    Domain* domain = any(host.domains);
    Completions* send_cq = any(host.completions);
    Completions* receive_cq = any(host.completions);
    Shared* shared = random_.one_in(3) ? any(host.shared) : nullptr;
    if (domain == nullptr || send_cq == nullptr) {
        return;
    }
    constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    ibv_qp_init_attr init{};
    init.qp_type = kTypes[random_.below(4)];
    init.send_cq = send_cq->cq;
    init.recv_cq = receive_cq->cq;
    if (init.qp_type == IBV_QPT_UC) {
        shared = nullptr;  // IBA 10.2.9.2: of RC and UD
    }
    init.srq = shared == nullptr ? nullptr : shared->srq;
    init.sq_sig_all = random_.one_in(3) ? 1 : 0;
    init.cap = {random_.within(1, 16), random_.within(1, 16), random_.within(1, 4),
                random_.within(1, 4), random_.below(128)};
    const bool absurd = random_.one_in(16);
    if (absurd) {
        switch (random_.below(4)) {
            case 0:
                init.cap.max_send_wr = kAbsurd;
                break;
            case 1:
                init.cap.max_send_sge = kAbsurd;
                break;
            case 2:
                init.send_cq = nullptr;
                break;
            default:
                init.qp_type = static_cast<ibv_qp_type>(77);
        }
    }
    ibv_qp* qp = ibv_create_qp(domain->pd, &init);
    if ((qp == nullptr) != absurd) {
        fail("ibv_create_qp of type " + std::to_string(init.qp_type) + ", " +
             std::to_string(init.cap.max_send_wr) + " sends of " +
             std::to_string(init.cap.max_send_sge) + " segments: errno " + std::to_string(errno));
    }
    if (qp == nullptr) {
        return;
    }
    ++domain->uses;
    ++send_cq->uses;
    ++receive_cq->uses;
    if (shared != nullptr) {
        ++shared->uses;
    }
    host.pairs.push_back(std::make_unique<Pair>(
        Pair{qp, domain, send_cq, receive_cq, shared, &ledger_.open(QueueKind::kSend),
             &ledger_.open(QueueKind::kReceive), init.cap, init.sq_sig_all != 0}));
}

// Mostly to the other host, sometimes to nobody.
ibv_ah_attr Walk::some_path(const Host& from) {
    const Host& to = other(from);
    ibv_ah_attr path{};
    path.port_num = 1;
    path.dlid = random_.one_in(16) ? static_cast<std::uint16_t>(random_.next()) : to.port.lid;
    if (from.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        path.is_global = 1;
        path.grh.dgid = to.gid;
        path.grh.sgid_index = 3;
        path.grh.hop_limit = 64;
    }
    return path;
}

void Walk::make_address(Host& host) {
    Domain* domain = any(host.domains);
    if (domain == nullptr) {
        return;
    }
    ibv_ah_attr path = some_path(host);
    const bool bad = random_.one_in(8);
    if (bad) {
        path.port_num = static_cast<std::uint8_t>(random_.within(3, 255));
    }
    ibv_ah* ah = ibv_create_ah(domain->pd, &path);
    require(!bad || ah == nullptr, "a port that is not there");
    if (ah != nullptr) {
        host.addresses.push_back(std::make_unique<Address>(Address{ah, domain}));
        ++domain->uses;
    }
}

void Walk::make_window(Host& host) {
    Domain* domain = any(host.domains);
    if (domain == nullptr) {
        return;
    }
    ibv_mw* mw = ibv_alloc_mw(domain->pd, random_.one_in(2) ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
    require(mw != nullptr, "ibv_alloc_mw");
    host.windows.push_back(std::make_unique<Window>(Window{mw, domain}));
    ++domain->uses;
}

void Walk::destroy_something(Host& host) {
    const auto one = [&](auto& list, auto destroy) {
        if (!list.empty()) {
            (this->*destroy)(host, random_.below(static_cast<std::uint32_t>(list.size())));
        }
    };
    switch (random_.below(8)) {
        case 0:
            return one(host.domains, &Walk::destroy_domain);
        case 1:
            return one(host.regions, &Walk::destroy_region);
        case 2:
            return one(host.channels, &Walk::destroy_channel);
        case 3:
            return one(host.completions, &Walk::destroy_completions);
        case 4:
            return one(host.shared, &Walk::destroy_shared);
        case 5:
            return one(host.addresses, &Walk::destroy_address);
        case 6:
            return one(host.windows, &Walk::destroy_window);
        default:
            return one(host.pairs, &Walk::destroy_pair);
    }
}

void Walk::destroy_domain(Host& host, std::size_t at) {
    const Domain& domain = *host.domains[at];
    if (destroyed(ibv_dealloc_pd(domain.pd), domain, "ibv_dealloc_pd")) {
        erase(host.domains, at);
    }
}

// Whether a window is bound to it, the device knows.
void Walk::destroy_region(Host& host, std::size_t at) {
    const Region& region = *host.regions[at];
    const int error = ibv_dereg_mr(region.mr);
    if (error == EBUSY && !host.windows.empty()) {
        return;
    }
    require(error == 0, "ibv_dereg_mr");
    --region.domain->uses;
    erase(host.regions, at);
}

void Walk::destroy_channel(Host& host, std::size_t at) {
    const Channel& channel = *host.channels[at];
    if (destroyed(ibv_destroy_comp_channel(channel.channel), channel, "ibv_destroy_comp_channel")) {
        erase(host.channels, at);
    }
}

void Walk::destroy_completions(Host& host, std::size_t at) {
    const Completions& completions = *host.completions[at];
    if (destroyed(ibv_destroy_cq(completions.cq), completions, "ibv_destroy_cq")) {
        if (completions.channel != nullptr) {
            --completions.channel->uses;
        }
        erase(host.completions, at);
    }
}

// A queue that was overrun serves nobody any more.
void Walk::bury_dead(Host& host) {
    for (std::size_t at = host.completions.size(); at-- > 0;) {
        const Completions* dead = host.completions[at].get();
        if (!dead->dead || !random_.one_in(2)) {
            continue;
        }
        for (std::size_t i = host.pairs.size(); i-- > 0;) {
            if (host.pairs[i]->send_cq == dead || host.pairs[i]->receive_cq == dead) {
                destroy_pair(host, i);
            }
        }
        destroy_completions(host, at);
    }
}

void Walk::destroy_shared(Host& host, std::size_t at) {
    const Shared& shared = *host.shared[at];
    if (destroyed(ibv_destroy_srq(shared.srq), shared, "ibv_destroy_srq")) {
        --shared.domain->uses;
        ledger_.close(*shared.queue);
        erase(host.shared, at);
    }
}

void Walk::destroy_pair(Host& host, std::size_t at) {
    const Pair& pair = *host.pairs[at];
    require(ibv_destroy_qp(pair.qp) == 0, "ibv_destroy_qp");
    --pair.domain->uses;
    --pair.send_cq->uses;
    --pair.receive_cq->uses;
    if (pair.shared != nullptr) {
        --pair.shared->uses;
    }
    ledger_.close(*pair.sends);
    ledger_.close(*pair.receives);
    erase(host.pairs, at);
}

void Walk::destroy_address(Host& host, std::size_t at) {
    const Address& address = *host.addresses[at];
    require(ibv_destroy_ah(address.ah) == 0, "ibv_destroy_ah");
    --address.domain->uses;
    erase(host.addresses, at);
}

void Walk::destroy_window(Host& host, std::size_t at) {
    const Window& window = *host.windows[at];
    require(ibv_dealloc_mw(window.mw) == 0, "ibv_dealloc_mw");
    --window.domain->uses;
    erase(host.windows, at);
}

}  // namespace walk
