// Requests posted, completions polled, events taken, and a link that loses packets.
#include <array>
#include <cerrno>

#include "simverbs/simverbs.h"

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

constexpr std::uint32_t kMostRequests = 3;  // of a list
constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;
constexpr int kMostCompletions = 200;

// Takes note of a list that was posted: those before the one that bad_wr points at were accepted.
template <typename Request>
std::size_t accepted(const std::vector<Request>& list, int error, const Request* bad) {
    if (error == 0) {
        return list.size();
    }
    require(bad >= list.data() && bad < list.data() + list.size(), "bad_wr points at no request");
    return static_cast<std::size_t>(bad - list.data());
}

template <typename Request>
void link(std::vector<Request>& list) {
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
        list[i].next = &list[i + 1];
    }
}

void check_room(const Queue& queue, int error, std::uint32_t capacity) {
    if (queue.outstanding() > capacity) {
        fail("queue " + std::to_string(queue.number()) + " took more requests than it has room");
    }
    if (error == ENOMEM && queue.outstanding() < capacity) {
        fail("queue " + std::to_string(queue.number()) + " has room, and yet ENOMEM");
    }
}

}  // namespace

// Mostly within a region, and of the right domain.
const Region* Walk::some_region(const Host& host, const Domain* domain) {
    const Region* region = any(host.regions);
    for (int tries = 0; tries < 8 && region != nullptr && region->domain != domain; ++tries) {
        region = any(host.regions);
    }
    return region;
}

ibv_sge Walk::some_segment(Host& host, const Domain* domain, std::uint32_t most) {
    const Region* region = some_region(host, domain);
    if (region == nullptr) {
        return {};
    }
    const auto size = region->length;
    const std::uint32_t offset = random_.below(std::min(size, 128U));
    std::uint32_t length = random_.within(std::min(most / 2, size - offset), size - offset);
    length = std::min(length, most);
    if (random_.one_in(256)) {
        length = random_.within(1, 1U << 14);  // beyond it, and into the guard
    }
    const std::uint32_t key =
        random_.one_in(256) ? static_cast<std::uint32_t>(random_.next()) : region->mr->lkey;
    return {region->base + offset, length, key};
}

// The domain of the queue pair that it was last connected to, if that lives.
const Domain* Walk::domain_of_peer(const Host& there, const Pair& pair) {
    for (const auto& other : there.pairs) {
        if (other->qp->qp_num == pair.peer_qpn) {
            return other->domain;
        }
    }
    return nullptr;
}

void Walk::aim(Host& host, Pair& pair, ibv_send_wr& wr) {
    Host& there = other(host);
    if (pair.qp->qp_type == IBV_QPT_UD) {
        const Address* address = any(host.addresses);
        for (int tries = 0; tries < 8 && address != nullptr && address->domain != pair.domain;
             ++tries) {
            address = any(host.addresses);
        }
        const Pair* to = any(there.pairs);
        wr.wr.ud.ah = address == nullptr ? nullptr : address->ah;
        wr.wr.ud.remote_qpn = address != nullptr && address->leads_to_group ? kMulticastQpn
                              : to == nullptr                               ? 77
                                                                            : to->qp->qp_num;
        wr.wr.ud.remote_qkey = random_.one_in(16) ? 1 : kQkey;
        return;
    }
    if (pair.qp->qp_type == IBV_QPT_XRC_SEND) {
        const Shared* shared = any(there.shared);
        wr.qp_type.xrc.remote_srqn = random_.next() & 0xFFFFFF;
        if (shared != nullptr && shared->xrcd != nullptr) {
            require(ibv_get_srq_num(shared->srq, &wr.qp_type.xrc.remote_srqn) == 0, "SRQ number");
        }
    }
    std::uint64_t address = random_.next();
    auto rkey = static_cast<std::uint32_t>(random_.next());
    const Region* region = some_region(there, domain_of_peer(there, pair));
    if (region != nullptr && !random_.one_in(256)) {
        address = region->base + random_.below(std::min(region->length, 128U));
        rkey = region->mr->rkey;
        if (const Window* window = any(there.windows); window != nullptr && random_.one_in(32)) {
            rkey = window->mw->rkey;
        }
    }
    if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = random_.one_in(128) ? address : address & ~std::uint64_t{7};
        wr.wr.atomic.rkey = rkey;
        return;
    }
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV) {
        const Window* window = any((wr.opcode == IBV_WR_LOCAL_INV ? host : there).windows);
        wr.invalidate_rkey = window == nullptr ? rkey : window->mw->rkey;
    }
}

ibv_send_wr Walk::some_send(Host& host, Pair& pair, std::vector<ibv_sge>& segments) {
    constexpr auto kUsual = std::to_array<ibv_wr_opcode>(
        {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
         IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD});
    ibv_send_wr wr{};
    const auto usual = pair.qp->qp_type == IBV_QPT_UD   ? 2U
                       : pair.qp->qp_type == IBV_QPT_UC ? 4U
                                                        : std::uint32_t{kUsual.size()};
    wr.opcode = kUsual[random_.below(usual)];
    if (random_.one_in(128)) {
        constexpr auto kOther = std::to_array<std::uint32_t>(
            {IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV, IBV_WR_BIND_MW, IBV_WR_TSO, 13});
        wr.opcode = static_cast<ibv_wr_opcode>(kOther[random_.below(std::uint32_t{kOther.size()})]);
    }
    wr.send_flags = random_.one_in(3) ? 0U : unsigned{IBV_SEND_SIGNALED};
    if (random_.one_in(16)) {
        wr.send_flags |= random_.below(32) & ~unsigned{IBV_SEND_SIGNALED};
    }
    const bool atomic =
        wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const std::uint32_t most = random_.one_in(8) ? 1U << 14 : 200;  // bytes a segment
    std::uint32_t count = atomic ? 1 : random_.below(pair.cap.max_send_sge + 1);
    if (random_.one_in(128)) {
        count = pair.cap.max_send_sge + 1;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        segments.push_back(some_segment(host, pair.domain, most));
        if (atomic && !random_.one_in(128)) {
            segments.back().length = 8;
        } else if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
            // An inline byte is read by the program itself: only where memory is.
            segments.back().addr = reinterpret_cast<std::uint64_t>(arena_.usable(0));
            segments.back().length = random_.below(Arena::kGuardBytes);
        }
    }
    wr.sg_list = segments.data();
    wr.num_sge = static_cast<int>(segments.size());
    if (wr.opcode == IBV_WR_BIND_MW) {
        const Window* window = any(host.windows);
        const Region* region = any(host.regions);
        wr.bind_mw.mw = window == nullptr ? nullptr : window->mw;
        wr.bind_mw.bind_info.mr = region == nullptr ? nullptr : region->mr;
        wr.opcode = window == nullptr || region == nullptr ? IBV_WR_SEND : wr.opcode;
        wr.bind_mw.rkey = static_cast<std::uint32_t>(random_.next());
        if (region != nullptr) {
            wr.bind_mw.bind_info.addr = region->base;
            wr.bind_mw.bind_info.length = random_.below(5000);
            wr.bind_mw.bind_info.mw_access_flags = random_.below(16);
        }
        if (wr.opcode == IBV_WR_BIND_MW && pair.qp->qp_type != IBV_QPT_UD) {
            return wr;
        }
        wr.opcode = IBV_WR_SEND;
    }
    aim(host, pair, wr);
    return wr;
}

// Mostly one that was connected.
Pair* Walk::some_pair(const Host& host) {
    Pair* pair = any(host.pairs);
    for (int tries = 0;
         tries < 4 && pair != nullptr && (pair->is_target() || state_of(*pair) != IBV_QPS_RTS);
         ++tries) {
        pair = any(host.pairs);
    }
    return pair != nullptr && pair->is_target() ? nullptr : pair;
}

void Walk::post_sends(Host& host) {
    Pair* pair = some_pair(host);
    if (pair == nullptr) {
        return;
    }
    const std::uint32_t count = random_.one_in(4) ? random_.within(1, kMostRequests) : 1;
    std::array<std::vector<ibv_sge>, kMostRequests> segments;
    std::vector<ibv_send_wr> list;
    for (std::uint32_t i = 0; i < count; ++i) {
        list.push_back(some_send(host, *pair, segments[i]));
        list.back().wr_id = pair->sends->next_id() + i;
    }
    int error = 0;
    std::size_t posted = 0;
    if (pair->extended && random_.one_in(2)) {
        error = post_extended(*pair, list);  // all of them or none
        posted = error == 0 ? list.size() : 0;
    } else {
        link(list);
        ibv_send_wr* bad = nullptr;
        error = ibv_post_send(pair->qp, list.data(), &bad);
        posted = accepted(list, error, bad);
    }
    for (std::size_t i = 0; i < posted; ++i) {
        pair->sends->posted(pair->signals_all || (list[i].send_flags & IBV_SEND_SIGNALED) != 0);
    }
    check_room(*pair->sends, error, pair->cap.max_send_wr);
}

void Walk::post_receives(Host& host) {
    Shared* shared = random_.one_in(3) ? any(host.shared) : nullptr;
    Pair* pair = some_pair(host);
    if (shared == nullptr &&
        (pair == nullptr || pair->shared != nullptr || pair->receive_cq == nullptr)) {
        return;
    }
    Queue& queue = shared != nullptr ? *shared->queue : *pair->receives;
    const std::uint32_t most = shared != nullptr ? shared->max_segments : pair->cap.max_recv_sge;
    const Domain* domain = shared != nullptr ? shared->domain : pair->domain;
    const std::uint32_t count = random_.within(1, kMostRequests);
    std::array<std::vector<ibv_sge>, kMostRequests> segments;
    std::vector<ibv_recv_wr> list;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t used = random_.one_in(128) ? most + 1 : random_.within(1, most);
        for (std::uint32_t j = 0; j < used; ++j) {
            segments[i].push_back(some_segment(host, domain, 1U << 14));
        }
        list.push_back({queue.next_id() + i, nullptr, segments[i].data(), static_cast<int>(used)});
    }
    link(list);
    ibv_recv_wr* bad = nullptr;
    const int error = shared != nullptr ? ibv_post_srq_recv(shared->srq, list.data(), &bad)
                                        : ibv_post_recv(pair->qp, list.data(), &bad);
    const std::size_t posted = accepted(list, error, bad);
    for (std::size_t i = 0; i < posted; ++i) {
        queue.posted(true);
    }
    if (shared == nullptr) {
        check_room(queue, error, pair->cap.max_recv_wr);
    }
}

// The verb for windows of type 1.
void Walk::bind(Host& host) {
    Pair* pair = any(host.pairs);
    const Window* window = any(host.windows);
    const Region* region = any(host.regions);
    if (pair == nullptr || pair->is_target() || window == nullptr || region == nullptr) {
        return;
    }
    ibv_mw_bind request{};
    request.wr_id = pair->sends->next_id();
    request.send_flags = random_.one_in(2) ? 0U : unsigned{IBV_SEND_SIGNALED};
    request.bind_info.mr = region->mr;
    request.bind_info.addr = region->base;
    request.bind_info.length = random_.one_in(16) ? 1U << 20 : random_.below(region->length);
    request.bind_info.mw_access_flags = random_.below(16);
    if (ibv_bind_mw(pair->qp, window->mw, &request) == 0) {
        pair->sends->posted(pair->signals_all || request.send_flags != 0);
    }
}

namespace {

// The same completions by the iterator.
int poll_extended(ibv_cq_ex* cq, int most, ibv_wc* found) {
    ibv_poll_cq_attr attr{};
    int count = 0;
    int error = most > 0 ? ibv_start_poll(cq, &attr) : ENOENT;
    if (error == ENOENT) {
        return 0;
    }
    require(error == 0, "ibv_start_poll");
    do {
        ibv_wc& wc = found[count++] = {};
        wc.wr_id = cq->wr_id;
        wc.status = cq->status;
        wc.qp_num = ibv_wc_read_qp_num(cq);
        wc.vendor_err = ibv_wc_read_vendor_err(cq);
        if (wc.status == IBV_WC_SUCCESS) {
            wc.opcode = ibv_wc_read_opcode(cq);
            wc.byte_len = ibv_wc_read_byte_len(cq);
            wc.wc_flags = ibv_wc_read_wc_flags(cq);
        }
        error = count < most ? ibv_next_poll(cq) : ENOENT;
    } while (error == 0);
    require(error == ENOENT, "ibv_next_poll");
    ibv_end_poll(cq);
    return count;
}

}  // namespace

void Walk::poll(Host& host, Completions& completions, int most) {
    std::array<ibv_wc, kMostCompletions> found;
    most = std::min(most, kMostCompletions);
    const int count = completions.extended != nullptr && random_.one_in(2)
                          ? poll_extended(completions.extended, most, found.data())
                          : ibv_poll_cq(completions.cq, most, found.data());
    require(count >= 0 && count <= most, "ibv_poll_cq");
    for (int i = 0; i < count; ++i) {
        const ibv_wc& wc = found[static_cast<std::size_t>(i)];
        bool lives = ledger_.outlives_queue_pairs(wc.wr_id);
        for (const auto& pair : host.pairs) {
            lives = lives || pair->qp->qp_num == wc.qp_num;
        }
        if (!lives) {
            fail(to_string(wc) + ": of a queue pair that was destroyed");
        }
        ledger_.completed(wc);
    }
    if (random_.one_in(8)) {
        require(ibv_req_notify_cq(completions.cq, random_.one_in(2) ? 1 : 0) == 0, "notify");
    }
    if (random_.one_in(32)) {
        require(simverbs_advance_ps(random_.below(200'000'000)) == 0, "simverbs_advance_ps");
    }
}

void Walk::take_events(Host& host) {
    ibv_async_event event{};
    while (ibv_get_async_event(host.context, &event) == 0) {
        require(event.event_type <= IBV_EVENT_GID_CHANGE + 2, "an event that does not exist");
        if (event.event_type == IBV_EVENT_CQ_ERR) {
            static_cast<Completions*>(event.element.cq->cq_context)->dead = true;
        }
        ibv_ack_async_event(&event);
    }
    bury_dead(host);
    if (const Channel* channel = any(host.channels)) {
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        while (ibv_get_cq_event(channel->channel, &cq, &context) == 0) {
            require(static_cast<Completions*>(context)->cq == cq, "an event of another queue");
            ibv_ack_cq_events(cq, 1);
        }
    }
}

// Some packet soon is lost, or a link is down for a moment.
void Walk::disturb() {
    const char* link = random_.one_in(2) ? "h0-s0" : "h1-s0";
    if (random_.one_in(8)) {
        require(simverbs_set_link(link, 0) == 0 && simverbs_set_link(link, 1) == 0, "set_link");
    } else {
        require(simverbs_drop_nth(link, "s0", random_.within(1, 20), nullptr) == 0, "drop_nth");
    }
}

}  // namespace walk
