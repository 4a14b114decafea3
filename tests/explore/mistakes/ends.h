/* Two connected ends of one program. Each program here has one mistake, which MENDED repairs. */
#ifndef SIMVERBS_TESTS_EXPLORE_MISTAKES_ENDS_H
#define SIMVERBS_TESTS_EXPLORE_MISTAKES_ENDS_H

#include <assert.h>

#include "../../clients/examples/end.h"

static struct end near_end, far_end;

static inline void connect_with(struct end* end, struct end* peer, uint8_t retries,
                                uint8_t rnr_retries) {
    connect_qp(end->qp, end, peer, peer->qp->qp_num);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    check(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) == 0, "to SQD");
    while (attr.sq_draining || attr.qp_state != IBV_QPS_SQD) {
        struct ibv_qp_init_attr init;
        check(ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
    }
    attr = (struct ibv_qp_attr){.retry_cnt = retries, .rnr_retry = rnr_retries};
    check(ibv_modify_qp(end->qp, &attr, IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY) == 0, "retries");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
    check(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) == 0, "to RTS");
}

static inline void open_ends(uint8_t retries, uint8_t rnr_retries) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_qp(&near_end, IBV_QPT_RC, NULL);
    create_qp(&far_end, IBV_QPT_RC, NULL);
    connect_with(&near_end, &far_end, retries, rnr_retries);
    connect_with(&far_end, &near_end, retries, rnr_retries);
}

static inline void close_ends(void) {
    close_end(&near_end);
    close_end(&far_end);
}

static inline void send_text(const char* text) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    strcpy((char*)near_end.memory, text);
    post_send(&near_end, &wr, (uint32_t)strlen(text) + 1);
}

/* The next completion of an end, whatever its status. */
static inline struct ibv_wc next_of(struct end* end) {
    struct ibv_wc wc;
    while (ibv_poll_cq(end->cq, 1, &wc) == 0) {
    }
    return wc;
}

#endif
