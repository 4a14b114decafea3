/* The part that the exercises share, so that each can be about one thing: a way to give up, a host
 * with what lessons 1 and 2 taught to make, and from lesson 4 on the connection that lesson 3
 * taught to build.
 *
 * Both hosts of an exercise live in one process: device 0 is h0's, device 1 is h1's. What two
 * programs would tell each other over a socket (LID, queue pair number, address and rkey) is read
 * from the other's structure here. Everything below is plain verbs: read it. */
#ifndef SIMVERBS_TUTORIALS_LAB_H
#define SIMVERBS_TUTORIALS_LAB_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

enum {
    LAB_BYTES = 4096, /* of memory that each host has */
    LAB_PSN = 100,    /* of the first packet in either direction */
    LAB_POLLS = 3000, /* of an empty queue, before lab_wait() gives up */
};

/* Ends the program when something does not hold, with what it was and errno. */
static inline void must(int holds, const char* what) {
    if (!holds) {
        fflush(stdout);
        fprintf(stderr, errno == 0 ? "gave up: %s\n" : "gave up: %s (errno: %s)\n", what,
                strerror(errno));
        exit(EXIT_FAILURE);
    }
}

struct lab_host {
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq; /* of sends and receives */
    struct ibv_mr* mr; /* all of `memory`, with every right */
    struct ibv_qp* qp;
    struct ibv_port_attr port; /* its port 1 */
    _Alignas(64) char memory[LAB_BYTES];
};

static inline struct ibv_context* lab_open_device(int which) {
    int count = 0;
    struct ibv_device** list = ibv_get_device_list(&count);
    must(list != NULL && which < count, "so many devices");
    struct ibv_context* context = ibv_open_device(list[which]);
    must(context != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    return context;
}

/* Everything but the queue pair. */
static inline void lab_open(struct lab_host* host, int which) {
    host->context = lab_open_device(which);
    must(ibv_query_port(host->context, 1, &host->port) == 0, "ibv_query_port");
    host->pd = ibv_alloc_pd(host->context);
    must(host->pd != NULL, "ibv_alloc_pd");
    host->cq = ibv_create_cq(host->context, 64, NULL, NULL, 0);
    must(host->cq != NULL, "ibv_create_cq");
    host->mr = ibv_reg_mr(host->pd, host->memory, LAB_BYTES,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    must(host->mr != NULL, "ibv_reg_mr");
}

/* An RC queue pair whose sends complete only where they ask for it (IBV_SEND_SIGNALED). `srq` may
 * be NULL. */
static inline void lab_create_qp(struct lab_host* host, struct ibv_srq* srq) {
    struct ibv_qp_init_attr init = {
        .send_cq = host->cq,
        .recv_cq = host->cq,
        .srq = srq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    host->qp = ibv_create_qp(host->pd, &init);
    must(host->qp != NULL, "ibv_create_qp");
}

/* RESET to INIT; then receives may be posted. */
static inline void lab_to_init(struct ibv_qp* qp) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "RESET to INIT");
}

/* INIT to RTR, towards the queue pair `peer_qpn` behind the port `peer_lid`. */
static inline void lab_to_rtr(struct ibv_qp* qp, uint16_t peer_lid, uint32_t peer_qpn) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer_qpn,
        .rq_psn = LAB_PSN,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12, /* 0.64 ms */
        .ah_attr = {.dlid = peer_lid, .port_num = 1},
    };
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "INIT to RTR");
}

/* RTR to RTS. A request without an answer is sent again after 4.096 us * 2^timeout, up to retry_cnt
 * times; one whose receiver is not ready up to rnr_retry times, 7: for ever. */
static inline void lab_to_rts(struct ibv_qp* qp, uint8_t timeout, uint8_t retry_cnt,
                              uint8_t rnr_retry) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .sq_psn = LAB_PSN,
                               .timeout = timeout,
                               .retry_cnt = retry_cnt,
                               .rnr_retry = rnr_retry,
                               .max_rd_atomic = 1};
    must(ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTR to RTS");
}

/* A queue pair at each, in INIT: the time to post receives. */
static inline void lab_prepare(struct lab_host* a, struct lab_host* b) {
    lab_create_qp(a, NULL);
    lab_create_qp(b, NULL);
    lab_to_init(a->qp);
    lab_to_init(b->qp);
}

/* Connects the two. */
static inline void lab_join(struct lab_host* a, struct lab_host* b) {
    lab_to_rtr(a->qp, b->port.lid, b->qp->qp_num);
    lab_to_rtr(b->qp, a->port.lid, a->qp->qp_num);
    lab_to_rts(a->qp, 14, 7, 7); /* 67 ms, 7 times */
    lab_to_rts(b->qp, 14, 7, 7);
}

static inline void lab_connect(struct lab_host* a, struct lab_host* b) {
    lab_prepare(a, b);
    lab_join(a, b);
}

/* A piece of the host's memory as a scatter/gather element. */
static inline struct ibv_sge lab_sge(const struct lab_host* host, uint32_t offset,
                                     uint32_t length) {
    return (struct ibv_sge){
        .addr = (uintptr_t)host->memory + offset, .length = length, .lkey = host->mr->lkey};
}

/* The name of a status without its IBV_WC_, as programs and the tables of the lessons write it;
 * ibv_wc_status_str() has words for it. */
static inline const char* lab_status_name(enum ibv_wc_status status) {
    static const char* const names[] = {
        "SUCCESS",          "LOC_LEN_ERR",       "LOC_QP_OP_ERR",     "LOC_EEC_OP_ERR",
        "LOC_PROT_ERR",     "WR_FLUSH_ERR",      "MW_BIND_ERR",       "BAD_RESP_ERR",
        "LOC_ACCESS_ERR",   "REM_INV_REQ_ERR",   "REM_ACCESS_ERR",    "REM_OP_ERR",
        "RETRY_EXC_ERR",    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR",  "REM_INV_RD_REQ_ERR",
        "REM_ABORT_ERR",    "INV_EECN_ERR",      "INV_EEC_STATE_ERR", "FATAL_ERR",
        "RESP_TIMEOUT_ERR", "GENERAL_ERR"};
    return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "no status";
}

/* The next completion. Each empty poll lets virtual time go on to the next event. */
static inline struct ibv_wc lab_wait(struct ibv_cq* cq) {
    struct ibv_wc wc;
    for (int i = 0; i < LAB_POLLS; ++i) {
        const int found = ibv_poll_cq(cq, 1, &wc);
        must(found >= 0, "ibv_poll_cq");
        if (found == 1) {
            return wc;
        }
    }
    must(0, "waiting for a completion that does not come");
    return wc;
}

/* The next completion, which has to be a success. */
static inline struct ibv_wc lab_wait_success(struct ibv_cq* cq) {
    const struct ibv_wc wc = lab_wait(cq);
    if (wc.status != IBV_WC_SUCCESS) {
        errno = 0;
        must(0, ibv_wc_status_str(wc.status));
    }
    return wc;
}

/* Objects end in the reverse order of their making: each holds on to what it was made from. */
static inline void lab_close(struct lab_host* host) {
    must(host->qp == NULL || ibv_destroy_qp(host->qp) == 0, "ibv_destroy_qp");
    must(ibv_destroy_cq(host->cq) == 0, "ibv_destroy_cq");
    must(ibv_dereg_mr(host->mr) == 0, "ibv_dereg_mr");
    must(ibv_dealloc_pd(host->pd) == 0, "ibv_dealloc_pd");
    must(ibv_close_device(host->context) == 0, "ibv_close_device");
}

#endif
