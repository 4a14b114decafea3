/* One end of a conversation: a device with one of each object. What the examples have in common,
   so that each shows its own subject and little else. Whatever fails ends the program. */
#ifndef SIMVERBS_TESTS_CLIENTS_EXAMPLES_END_H
#define SIMVERBS_TESTS_CLIENTS_EXAMPLES_END_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum { kBytes = 4096, kPolls = 10000000, kInitialPsn = 77 };

struct end {
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr; /* all of `memory` */
    struct ibv_qp* qp;
    struct ibv_port_attr port;
    union ibv_gid gid; /* of index 0 */
    _Alignas(8) uint8_t memory[kBytes];
};

/* Only one thread may call exit(3), and may call it once. */
static inline void check(int held, const char* what) {
    static atomic_flag is_ending = ATOMIC_FLAG_INIT;
    if (!held) {
        while (atomic_flag_test_and_set(&is_ending)) {
            pause();
        }
        fprintf(stderr, "failed: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

/* Everything but the queue pair, on the device of this position in the list. */
static inline void open_end(struct end* end, int position) {
    int count = 0;
    struct ibv_device** devices = ibv_get_device_list(&count);
    check(devices != NULL && count > position, "a device for each end");
    end->context = ibv_open_device(devices[position]);
    ibv_free_device_list(devices);
    check(end->context != NULL, "ibv_open_device");
    check(ibv_query_port(end->context, 1, &end->port) == 0, "ibv_query_port");
    check(ibv_query_gid(end->context, 1, 0, &end->gid) == 0, "ibv_query_gid");
    end->pd = ibv_alloc_pd(end->context);
    check(end->pd != NULL, "ibv_alloc_pd");
    end->cq = ibv_create_cq(end->context, 64, NULL, NULL, 0);
    check(end->cq != NULL, "ibv_create_cq");
    end->mr = ibv_reg_mr(end->pd, end->memory, kBytes,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    check(end->mr != NULL, "ibv_reg_mr");
}

/* `srq` may be NULL: the queue pair then has receives of its own. */
static inline void create_qp(struct end* end, enum ibv_qp_type type, struct ibv_srq* srq) {
    struct ibv_qp_init_attr init = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .srq = srq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = type,
        .sq_sig_all = 1};
    end->qp = ibv_create_qp(end->pd, &init);
    check(end->qp != NULL, "ibv_create_qp");
}

/* The way to a peer's port: by LID on InfiniBand, by GID on Ethernet, which has no LIDs. */
static inline struct ibv_ah_attr path_to(const struct end* end, const struct end* peer) {
    struct ibv_ah_attr path = {.dlid = peer->port.lid, .port_num = 1};
    if (end->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        path.is_global = 1;
        path.grh.dgid = peer->gid;
        path.grh.hop_limit = 1;
    }
    return path;
}

/* Brings `qp`, of `end`, up to talk to the queue pair `peer_qpn` of `peer`. RC and both ends of
 * XRC. */
static inline void connect_qp(struct ibv_qp* qp, const struct end* end, const struct end* peer,
                              uint32_t peer_qpn) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "to INIT");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = peer_qpn,
                                .rq_psn = kInitialPsn,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer = 12,
                                .ah_attr = path_to(end, peer)};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "to RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = kInitialPsn,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to RTS");
}

static inline void connect_ends(struct end* a, struct end* b) {
    connect_qp(a->qp, a, b, b->qp->qp_num);
    connect_qp(b->qp, b, a, a->qp->qp_num);
}

static inline struct ibv_sge range(const struct end* end, uint32_t offset, uint32_t length) {
    return (struct ibv_sge){(uintptr_t)end->memory + offset, length, end->mr->lkey};
}

static inline void post_receive(struct end* end, uint64_t id, uint32_t offset, uint32_t length) {
    struct ibv_sge sge = range(end, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check(ibv_post_recv(end->qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* Sends, or whatever the request's opcode says, `length` bytes from the start of the memory. */
static inline void post_send(struct end* end, struct ibv_send_wr* wr, uint32_t length) {
    struct ibv_sge sge = range(end, 0, length);
    struct ibv_send_wr* bad = NULL;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    check(ibv_post_send(end->qp, wr, &bad) == 0, "ibv_post_send");
}

static inline struct ibv_wc wait_for(struct end* end, enum ibv_wc_status status) {
    struct ibv_wc wc = {0};
    int found = 0;
    for (int i = 0; i < kPolls && found == 0; ++i) {
        found = ibv_poll_cq(end->cq, 1, &wc);
    }
    check(found == 1, "a completion");
    if (wc.status != status) {
        fprintf(stderr, "%s instead of %s\n", ibv_wc_status_str(wc.status),
                ibv_wc_status_str(status));
        exit(EXIT_FAILURE);
    }
    return wc;
}

static inline void close_end(struct end* end) {
    check(end->qp == NULL || ibv_destroy_qp(end->qp) == 0, "ibv_destroy_qp");
    check(ibv_destroy_cq(end->cq) == 0, "ibv_destroy_cq");
    check(ibv_dereg_mr(end->mr) == 0, "ibv_dereg_mr");
    check(ibv_dealloc_pd(end->pd) == 0, "ibv_dealloc_pd");
    check(ibv_close_device(end->context) == 0, "ibv_close_device");
}

#endif
