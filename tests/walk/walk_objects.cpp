// Objects made and destroyed, with their users counted.
#include <cerrno>
#include <cstring>

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
    switch (random_.below(13)) {
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
        case 7:
            return host.xrc_domains.size() < 2 ? make_xrc_domain(host) : void();
        case 8:
            return room(host.memories) ? make_memory(host) : void();
        case 9:
            return room(host.regions) ? make_memory_region(host) : void();
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
    constexpr int kWriting =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    if (!random_.one_in(4)) {
        access |= kWriting | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
    }
    if (!Arena::writable(slot)) {
        access &= ~kWrites;
    }
    const bool remote_only = (access & kWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0;
    ibv_mr* mr = ibv_reg_mr(domain->pd, arena_.usable(slot) + begin, length, access);
    require((mr == nullptr) == remote_only, "remote writing needs local writing");
    if (mr != nullptr) {
        host.regions.push_back(std::make_unique<Region>(
            Region{mr, domain, reinterpret_cast<std::uint64_t>(mr->addr), length, slot, access}));
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
    ibv_comp_channel* events = channel == nullptr ? nullptr : channel->channel;
    if (random_.one_in(2)) {
        ibv_cq_init_attr_ex init{};
        init.cqe = static_cast<std::uint32_t>(entries);
        init.cq_context = made.get();
        init.channel = events;
        init.wc_flags = IBV_WC_STANDARD_FLAGS;
        made->extended = ibv_create_cq_ex(host.context, &init);
        made->cq = made->extended == nullptr ? nullptr : ibv_cq_ex_to_cq(made->extended);
    } else {
        made->cq = ibv_create_cq(host.context, entries, made.get(), events, 0);
    }
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
    XrcDomain* xrcd = random_.one_in(2) ? any(host.xrc_domains) : nullptr;
    Completions* completions = xrcd == nullptr ? nullptr : any(host.completions);
    ibv_srq_init_attr_ex init{};
    init.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    init.attr.max_wr = absurd ? kAbsurd : random_.within(1, 32);
    init.attr.max_sge = random_.within(1, 4);
    init.pd = domain->pd;
    if (completions != nullptr) {
        init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        init.srq_type = IBV_SRQT_XRC;
        init.xrcd = xrcd->xrcd;
        init.cq = completions->cq;
    }
    ibv_srq* srq = ibv_create_srq_ex(host.context, &init);
    require((srq == nullptr) == absurd, "ibv_create_srq_ex");
    if (srq == nullptr) {
        return;
    }
    ++domain->uses;
    const QueueKind kind = completions == nullptr ? QueueKind::kShared : QueueKind::kXrcShared;
    auto made =
        std::make_unique<Shared>(Shared{srq, domain, &ledger_.open(kind), init.attr.max_sge});
    if (completions != nullptr) {
        made->xrcd = xrcd;
        made->completions = completions;
        ++xrcd->uses;
        ++completions->uses;
    }
    host.shared.push_back(std::move(made));
}

namespace {

template <typename Object>
void count_uses(Object* object, int change) {
    if (object != nullptr) {
        object->uses += change;
    }
}

// With ibv_wr_*() for all that the service has.
std::uint64_t operations_of(ibv_qp_type type) {
    std::uint64_t operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (type != IBV_QPT_UD) {
        operations |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                      IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV |
                      IBV_QP_EX_WITH_BIND_MW;
    }
    if (type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND) {
        operations |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
    return operations;
}

}  // namespace

void Walk::make_absurd(ibv_qp_init_attr_ex& init) {
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

void Walk::make_pair(Host& host) {
    constexpr ibv_qp_type kTypes[] = {IBV_QPT_RC, IBV_QPT_RC,       IBV_QPT_UC,
                                      IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV};
    ibv_qp_init_attr_ex init{};
    init.qp_type = kTypes[random_.below(6)];
    const bool target = init.qp_type == IBV_QPT_XRC_RECV;
    const bool has_receives = !target && init.qp_type != IBV_QPT_XRC_SEND;
    XrcDomain* xrcd = target ? any(host.xrc_domains) : nullptr;
    Domain* domain = target ? nullptr : any(host.domains);
    Completions* send_cq = target ? nullptr : any(host.completions);
    Completions* receive_cq = has_receives ? any(host.completions) : nullptr;
    Shared* shared = random_.one_in(3) ? any(host.shared) : nullptr;
    if (target ? xrcd == nullptr : domain == nullptr || send_cq == nullptr) {
        return;
    }
    if (!has_receives || init.qp_type == IBV_QPT_UC ||
        (shared != nullptr && shared->xrcd != nullptr)) {
        shared = nullptr;  // IBA 10.2.9.2: of RC and UD
    }
    init.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
    init.xrcd = target ? xrcd->xrcd : nullptr;
    init.pd = target ? nullptr : domain->pd;
    init.send_cq = target ? nullptr : send_cq->cq;
    init.recv_cq = has_receives ? receive_cq->cq : nullptr;
    init.srq = shared == nullptr ? nullptr : shared->srq;
    init.sq_sig_all = random_.one_in(3) ? 1 : 0;
    init.cap = {random_.within(1, 16), random_.within(1, 16), random_.within(1, 4),
                random_.within(1, 4), random_.below(128)};
    const bool extended = !target && random_.one_in(2);
    if (extended) {
        init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.send_ops_flags = operations_of(init.qp_type);
    }
    const bool absurd = !target && random_.one_in(16);
    if (absurd) {
        make_absurd(init);
    }
    ibv_qp* qp = ibv_create_qp_ex(host.context, &init);
    if ((qp == nullptr) != absurd) {
        fail("ibv_create_qp_ex of type " + std::to_string(init.qp_type) + ", " +
             std::to_string(init.cap.max_send_wr) + " sends of " +
             std::to_string(init.cap.max_send_sge) + " segments: errno " + std::to_string(errno));
    }
    if (qp == nullptr) {
        return;
    }
    count_uses(domain, 1);
    count_uses(send_cq, 1);
    count_uses(receive_cq, 1);
    count_uses(shared, 1);
    count_uses(xrcd, 1);
    host.pairs.push_back(std::make_unique<Pair>(Pair{qp,
                                                     domain,
                                                     send_cq,
                                                     receive_cq,
                                                     shared,
                                                     &ledger_.open(QueueKind::kSend),
                                                     &ledger_.open(QueueKind::kReceive),
                                                     init.cap,
                                                     init.sq_sig_all != 0,
                                                     xrcd,
                                                     extended,
                                                     {}}));
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

// One in four leads to a group.
void Walk::make_address(Host& host) {
    Domain* domain = any(host.domains);
    if (domain == nullptr) {
        return;
    }
    ibv_ah_attr path = some_path(host);
    const bool to_group = random_.one_in(4);
    if (to_group) {
        const std::uint32_t number = random_.below(kGroups);
        path.is_global = 1;
        path.grh.dgid = group(number);
        path.dlid = group_lid(host, number);
    }
    const bool bad = random_.one_in(8);
    if (bad) {
        path.port_num = static_cast<std::uint8_t>(random_.within(3, 255));
    }
    ibv_ah* ah = ibv_create_ah(domain->pd, &path);
    require(!bad || ah == nullptr, "a port that is not there");
    if (ah != nullptr) {
        host.addresses.push_back(std::make_unique<Address>(Address{ah, domain, to_group}));
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
    switch (random_.below(10)) {
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
        case 7:
            return one(host.xrc_domains, &Walk::destroy_xrc_domain);
        case 8:
            return one(host.memories, &Walk::destroy_memory);
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

// The device knows whether a window is bound to it.
void Walk::destroy_region(Host& host, std::size_t at) {
    const Region& region = *host.regions[at];
    const int error = ibv_dereg_mr(region.mr);
    if (error == EBUSY && !host.windows.empty()) {
        return;
    }
    require(error == 0, "ibv_dereg_mr");
    --region.domain->uses;
    count_uses(region.memory, -1);
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
        for (std::size_t i = host.shared.size(); i-- > 0;) {
            if (host.shared[i]->completions == dead) {
                destroy_shared(host, i);
            }
        }
        destroy_completions(host, at);
    }
}

void Walk::destroy_shared(Host& host, std::size_t at) {
    const Shared& shared = *host.shared[at];
    if (destroyed(ibv_destroy_srq(shared.srq), shared, "ibv_destroy_srq")) {
        --shared.domain->uses;
        count_uses(shared.xrcd, -1);
        count_uses(shared.completions, -1);
        ledger_.close(*shared.queue);
        erase(host.shared, at);
    }
}

void Walk::destroy_pair(Host& host, std::size_t at) {
    const Pair& pair = *host.pairs[at];
    if (!pair.groups.empty()) {
        require(ibv_destroy_qp(pair.qp) == EBUSY, "ibv_destroy_qp of a member of a group");
    }
    for (const std::uint32_t number : pair.groups) {
        const ibv_gid gid = group(number);
        require(ibv_detach_mcast(pair.qp, &gid, group_lid(host, number)) == 0, "ibv_detach_mcast");
    }
    require(ibv_destroy_qp(pair.qp) == 0, "ibv_destroy_qp");
    count_uses(pair.domain, -1);
    count_uses(pair.send_cq, -1);
    count_uses(pair.receive_cq, -1);
    count_uses(pair.shared, -1);
    count_uses(pair.xrcd, -1);
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

void Walk::make_xrc_domain(Host& host) {
    ibv_xrcd_init_attr init{};
    init.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    init.fd = -1;
    init.oflags = O_CREAT;
    ibv_xrcd* xrcd = ibv_open_xrcd(host.context, &init);
    require(xrcd != nullptr, "ibv_open_xrcd");
    host.xrc_domains.push_back(std::make_unique<XrcDomain>(XrcDomain{xrcd}));
}

void Walk::destroy_xrc_domain(Host& host, std::size_t at) {
    const XrcDomain& domain = *host.xrc_domains[at];
    if (destroyed(ibv_close_xrcd(domain.xrcd), domain, "ibv_close_xrcd")) {
        erase(host.xrc_domains, at);
    }
}

void Walk::destroy_memory(Host& host, std::size_t at) {
    const DeviceMemory& memory = *host.memories[at];
    if (destroyed(ibv_free_dm(memory.dm), memory, "ibv_free_dm")) {
        erase(host.memories, at);
    }
}

}  // namespace walk
