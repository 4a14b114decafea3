/* Two connected ends of one program. Each program here has one mistake, which MENDED repairs. */
#ifndef SIMVERBS_TESTS_EXPLORE_MISTAKES_ENDS_H
#define SIMVERBS_TESTS_EXPLORE_MISTAKES_ENDS_H

#include <assert.h>

#include "../../clients/examples/end.h"

/* After so many empty polls nothing comes any more: time passes in polls, and they are far more
 * than all retries of a connection need. */
enum { kEmptyPolls = 2000 };

enum { kQkey = 0x1234 };

/* How often a connection tries again. */
struct connection {
    uint8_t timeout; /* 4.096 us * 2^timeout */
    uint8_t retries;
    uint8_t rnr_retries;
};

static const struct connection kPatient = {.timeout = 14, .retries = 7, .rnr_retries = 7};

static struct end near_end, far_end;

/* The packet number with which both ends of a connection begin. */
static uint32_t first_psn = kInitialPsn;

/* Brings `qp` of `end` from RESET to RTS. */
static inline void bring_up(struct ibv_qp* qp, const struct end* end, const struct end* peer,
                            uint32_t peer_qpn, struct connection how) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qkey = kQkey,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    const int is_reliable = qp->qp_type == IBV_QPT_RC;
    const int is_datagram = qp->qp_type == IBV_QPT_UD;
    if (is_reliable) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                            (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0,
          "to INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer_qpn,
                                .rq_psn = first_psn,
                                .max_dest_rd_atomic = 4,
                                .min_rnr_timer = 12,
                                .ah_attr = path_to(end, peer)};
    int mask = IBV_QP_STATE;
    if (!is_datagram) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (is_reliable) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    check(ibv_modify_qp(qp, &attr, mask) == 0, "to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = first_psn,
                                .timeout = how.timeout,
                                .retry_cnt = how.retries,
                                .rnr_retry = how.rnr_retries,
                                .max_rd_atomic = 4};
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (is_reliable) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    check(ibv_modify_qp(qp, &attr, mask) == 0, "to RTS");
}

static inline void to_state(struct ibv_qp* qp, enum ibv_qp_state state) {
    struct ibv_qp_attr attr = {.qp_state = state};
    check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "ibv_modify_qp");
}

/* Connects a queue pair of the near end with one of the far end. */
static inline void connect_pair(struct ibv_qp* near_qp, struct ibv_qp* far_qp,
                                struct connection how) {
    bring_up(near_qp, &near_end, &far_end, far_qp->qp_num, how);
    bring_up(far_qp, &far_end, &near_end, near_qp->qp_num, how);
}

/* Opens both ends, with queue pairs that signal every request. */
static inline void open_ends_of(enum ibv_qp_type type, struct connection how) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_qp(&near_end, type, NULL);
    create_qp(&far_end, type, NULL);
    connect_pair(near_end.qp, far_end.qp, how);
}

static inline void open_ends(struct connection how) {
    open_ends_of(IBV_QPT_RC, how);
}

/* Connects both ends anew, by other packet numbers. What was posted is gone. */
static inline void reconnect(void) {
    first_psn = (first_psn + 1000) % (1U << 24);
    to_state(near_end.qp, IBV_QPS_RESET);
    to_state(far_end.qp, IBV_QPS_RESET);
    connect_pair(near_end.qp, far_end.qp, kPatient);
}

static inline void close_ends(void) {
    close_end(&near_end);
    close_end(&far_end);
}

/* A further queue pair of an end, like its first one. */
static inline struct ibv_qp* another_qp(struct end* end, struct ibv_srq* srq) {
    struct ibv_qp* const first = end->qp;
    create_qp(end, IBV_QPT_RC, srq);
    struct ibv_qp* const added = end->qp;
    end->qp = first;
    return added;
}

/* Sends, or whatever the request's opcode says, `length` bytes from `offset` of the memory. */
static inline void post_on(struct ibv_qp* qp, const struct end* end, struct ibv_send_wr* wr,
                           uint32_t offset, uint32_t length) {
    struct ibv_sge sge = range(end, offset, length);
    struct ibv_send_wr* bad = NULL;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    check(ibv_post_send(qp, wr, &bad) == 0, "ibv_post_send");
}

static inline void receive_on(struct ibv_qp* qp, const struct end* end, uint64_t id,
                              uint32_t offset, uint32_t length) {
    struct ibv_sge sge = range(end, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* A datagram for the peer's queue pair; `ah` is of the sender. */
static inline struct ibv_send_wr datagram_to(const struct end* peer, struct ibv_ah* ah) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = peer->qp->qp_num;
    wr.wr.ud.remote_qkey = kQkey;
    return wr;
}

static inline struct ibv_ah* address_of(const struct end* peer, const struct end* end) {
    struct ibv_ah_attr path = path_to(end, peer);
    struct ibv_ah* ah = ibv_create_ah(end->pd, &path);
    check(ah != NULL, "ibv_create_ah");
    return ah;
}

/* A request with this opcode for the peer's memory at `offset`. */
static inline struct ibv_send_wr request_to(enum ibv_wr_opcode opcode, const struct end* peer,
                                            uint32_t offset) {
    struct ibv_send_wr wr = {.opcode = opcode};
    wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + offset;
    wr.wr.rdma.rkey = peer->mr->rkey;
    return wr;
}

static inline void send_text(const char* text) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    strcpy((char*)near_end.memory, text);
    post_send(&near_end, &wr, (uint32_t)strlen(text) + 1);
}

/* Ends the program if this end's device is gone, as it is when its host was killed. */
static inline void check_device(const struct end* end) {
    struct ibv_port_attr port;
    check(ibv_query_port(end->context, 1, &port) == 0, "a device that answers");
}

/* Ends the program if this end's device is gone, its port is down or its queue pair has failed. */
static inline void check_end(const struct end* end) {
    struct ibv_port_attr port;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    check(ibv_query_port(end->context, 1, &port) == 0, "a device that answers");
    check(port.state == IBV_PORT_ACTIVE, "an active port");
    check(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
    check(attr.qp_state == IBV_QPS_RTS, "a queue pair that works");
}

/* The next completion of an end, whatever its status; gives up when none can come any more. */
static inline struct ibv_wc next_of(struct end* end) {
    struct ibv_wc wc = {0};
    int found = 0;
    for (int i = 0; i < kEmptyPolls && found == 0; ++i) {
        found = ibv_poll_cq(end->cq, 1, &wc);
    }
    check(found == 1, "a completion");
    return wc;
}

/* The next completion of an end, which must be a success. */
static inline struct ibv_wc next_success(struct end* end) {
    const struct ibv_wc wc = next_of(end);
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    return wc;
}

/* Writes 8 bytes to the far end, and calls `look` with the near end until they are acknowledged. */
static inline void write_while(void (*look)(const struct end*)) {
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    struct ibv_wc wc = {0};
    int polls = 0;
    for (post_send(&near_end, &wr, 8); ibv_poll_cq(near_end.cq, 1, &wc) == 0; ++polls) {
        look(&near_end);
        check(polls < kEmptyPolls, "a completion");
    }
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

#endif
