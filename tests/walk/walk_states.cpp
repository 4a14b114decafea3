// States of queue pairs: taken through valid steps, and pushed with attributes of any kind.
#include <cerrno>

#include "tests/walk/walk.hpp"

namespace walk {
namespace {

constexpr std::uint32_t kPsns = 1U << 24;
constexpr int kAllAttributes = (IBV_QP_DEST_QPN << 1) - 1;

}  // namespace

ibv_qp_state state_of(const Pair& pair) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    require(ibv_query_qp(pair.qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
    require(attr.qp_state <= IBV_QPS_ERR, "a state that does not exist");
    require(init.send_cq == pair.qp->send_cq && init.cap.max_send_wr >= pair.cap.max_send_wr,
            "ibv_query_qp tells of another queue pair");
    return attr.qp_state;
}

namespace {

bool is_error(ibv_qp_state state) {
    return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
}

}  // namespace

// A failed modify changes nothing; in time that passes meanwhile the queue pair may fail by itself.
bool Walk::move(Pair& pair, ibv_qp_attr& attr, int mask) {
    const ibv_qp_state before = state_of(pair);
    const int error = ibv_modify_qp(pair.qp, &attr, mask);
    const bool moves = error == 0 && (mask & IBV_QP_STATE) != 0;
    if (moves && attr.qp_state == IBV_QPS_RESET) {
        pair.sends->purge();
        pair.receives->purge();
    } else if (moves && before == IBV_QPS_SQE && attr.qp_state == IBV_QPS_RTS) {
        pair.sends->revive();
    }
    const ibv_qp_state expected = moves ? attr.qp_state : before;
    const ibv_qp_state after = state_of(pair);
    if (after != expected && (!is_error(after) || expected == IBV_QPS_RESET)) {
        fail("QP " + std::to_string(pair.qp->qp_num) + " went from " + std::to_string(before) +
             " to " + std::to_string(after) + ", not " + std::to_string(expected));
    }
    return error == 0;
}

void Walk::modify_at_random(Host& host) {
    Pair* pair = any(host.pairs);
    if (pair == nullptr) {
        return;
    }
    ibv_qp_attr attr{};
    attr.qp_state = static_cast<ibv_qp_state>(random_.below(8));
    attr.cur_qp_state = static_cast<ibv_qp_state>(random_.below(8));
    attr.path_mtu = static_cast<ibv_mtu>(random_.below(7));
    attr.path_mig_state = static_cast<ibv_mig_state>(random_.below(4));
    attr.qkey = kQkey;
    attr.rq_psn = static_cast<std::uint32_t>(random_.next());
    attr.sq_psn = random_.below(1U << 24);
    attr.dest_qp_num = random_.below(1U << 25);
    attr.qp_access_flags = random_.below(64);
    attr.ah_attr = some_path(host);
    attr.pkey_index = static_cast<std::uint16_t>(random_.below(2));
    attr.max_rd_atomic = static_cast<std::uint8_t>(random_.below(20));
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(random_.below(20));
    attr.min_rnr_timer = static_cast<std::uint8_t>(random_.below(34));
    attr.port_num = static_cast<std::uint8_t>(random_.below(3));
    attr.timeout = static_cast<std::uint8_t>(random_.below(34));
    attr.retry_cnt = static_cast<std::uint8_t>(random_.below(9));
    attr.rnr_retry = static_cast<std::uint8_t>(random_.below(9));
    attr.en_sqd_async_notify = static_cast<std::uint8_t>(random_.below(2));
    const bool few = random_.one_in(8);
    const int mask = few ? IBV_QP_STATE : static_cast<int>(random_.next()) & kAllAttributes;
    move(*pair, attr, mask & ~IBV_QP_CAP);  // its capacity is what create said
}

void Walk::modify_shared(Host& host) {
    Shared* shared = any(host.shared);
    if (shared == nullptr) {
        return;
    }
    ibv_srq_attr attr{};
    attr.max_wr = random_.within(1, 40);
    attr.srq_limit = random_.below(40);
    const int mask = static_cast<int>(random_.below(8));
    ibv_srq_attr before{};
    ibv_srq_attr after{};
    require(ibv_query_srq(shared->srq, &before) == 0, "ibv_query_srq");
    if (ibv_modify_srq(shared->srq, &attr, mask) != 0) {
        require(ibv_query_srq(shared->srq, &after) == 0, "ibv_query_srq");
        require(after.max_wr == before.max_wr, "a failed ibv_modify_srq has resized");
    }
}

void Walk::resize_completions(Host& host) {
    Completions* completions = any(host.completions);
    if (completions == nullptr) {
        return;
    }
    const auto entries = static_cast<int>(random_.below(160));
    const int before = completions->cq->cqe;
    if (ibv_resize_cq(completions->cq, entries) == 0) {
        require(completions->cq->cqe >= entries && entries > 0, "ibv_resize_cq");
    } else {
        require(completions->cq->cqe == before, "a failed ibv_resize_cq has resized");
    }
}

namespace {

bool fit(const Pair& one, const Pair& other) {
    const ibv_qp_type type = one.qp->qp_type;
    const ibv_qp_type wanted = type == IBV_QPT_XRC_SEND   ? IBV_QPT_XRC_RECV
                               : type == IBV_QPT_XRC_RECV ? IBV_QPT_XRC_SEND
                                                          : type;
    return other.qp->qp_type == wanted;
}

}  // namespace

// Two queue pairs of one service; mostly such as have nothing better to do.
void Walk::connect() {
    const auto idle = [this](const Host& host) {
        Pair* pair = any(host.pairs);
        for (int tries = 0; tries < 8 && pair != nullptr && state_of(*pair) == IBV_QPS_RTS;
             ++tries) {
            pair = any(host.pairs);
        }
        return pair;
    };
    Pair* first = idle(hosts_[0]);
    Pair* second = idle(hosts_[1]);
    for (int tries = 0; tries < 8 && first != nullptr && second != nullptr && !fit(*first, *second);
         ++tries) {
        second = idle(hosts_[1]);
    }
    if (first == nullptr || second == nullptr || !fit(*first, *second)) {
        return;
    }
    const bool busy = state_of(*first) == IBV_QPS_RTS || state_of(*second) == IBV_QPS_RTS;
    if (busy && !random_.one_in(16)) {
        return;
    }
    // Numbers of its own for each connection: packets of an earlier one that are still under way,
    // which the communication manager's TimeWait state is for, would be taken for answers to
    // another request: BAD_RESP_ERR.
    const std::uint32_t psns[2] = {random_.below(kPsns), random_.below(kPsns)};
    if (bring_up(hosts_[0], *first, hosts_[1], *second, psns[0], psns[1])) {
        bring_up(hosts_[1], *second, hosts_[0], *first, psns[1], psns[0]);
    }
}

bool Walk::bring_up(Host& host, Pair& pair, const Host& peer_host, const Pair& peer,
                    std::uint32_t send_psn, std::uint32_t receive_psn) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RESET;
    require(move(pair, attr, IBV_QP_STATE), "to RESET from any state");
    const bool datagrams = pair.qp->qp_type == IBV_QPT_UD;
    const bool reliable = !datagrams && pair.qp->qp_type != IBV_QPT_UC;
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    attr.qp_access_flags = random_.one_in(8) ? random_.below(16) : 15;
    constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    require(move(pair, attr, kInit | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)), "to INIT");
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr = some_path(host);
    attr.ah_attr.dlid = peer_host.port.lid;
    attr.path_mtu = random_.one_in(2) ? IBV_MTU_256 : IBV_MTU_1024;
    attr.dest_qp_num = pair.peer_qpn = peer.qp->qp_num;
    attr.rq_psn = receive_psn;
    attr.min_rnr_timer = static_cast<std::uint8_t>(random_.within(1, 12));
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(random_.one_in(16) ? 0 : 4);
    int mask = IBV_QP_STATE;
    if (!datagrams) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (reliable) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    require(move(pair, attr, mask), "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = static_cast<std::uint8_t>(random_.within(8, 12));
    attr.sq_psn = send_psn;
    attr.retry_cnt = static_cast<std::uint8_t>(random_.within(1, 7));
    attr.rnr_retry = static_cast<std::uint8_t>(random_.below(7));
    attr.max_rd_atomic = attr.max_dest_rd_atomic;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (reliable) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return move(pair, attr, mask);  // it may have failed since, by what an earlier peer sent it
}

void Walk::fail_or_reset(Host& host) {
    if (Pair* pair = any(host.pairs)) {
        ibv_qp_attr attr{};
        attr.qp_state = random_.one_in(2) ? IBV_QPS_ERR : IBV_QPS_RESET;
        require(move(*pair, attr, IBV_QP_STATE), "to ERR or RESET from any state");
    }
}

}  // namespace walk
