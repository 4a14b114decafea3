/* Lesson 10: break it ten ways. Each experiment has a fresh connection, one request of h0, and one
 * thing that is wrong with it. Five times the mistake is made and you name the status; five times
 * the status is named and you make the mistake. */
#include <simverbs/simverbs.h>

#include "lab.h"

enum { LENGTH = 64 };
static struct lab_host h0, h1;

/* The parts that an experiment may spoil. As it stands everything succeeds. */
struct request {
    enum ibv_wr_opcode opcode; /* SEND, WRITE or READ */
    uint32_t length;           /* of the local bytes */
    uint32_t lkey;
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t receive_length; /* of the receive that h1 posts; 0: it posts none */
    uint32_t receive_lkey;
    uint8_t rnr_retry;   /* 7: for ever */
    int link_is_cut;     /* before the request is posted */
    int qp_is_broken;    /* h0's queue pair is in ERR before the request is posted */
    int answer_is_wrong; /* h0 gets a READ response for an acknowledgement */
};

/* ---- the mistake is made: name the status ---------------------------------------------------- */

static void wrong_lkey(struct request* request) {
    request->lkey += 1000;
}
static void wrong_rkey(struct request* request) {
    request->opcode = IBV_WR_RDMA_WRITE;
    request->rkey += 1000;
}
static void cut_link(struct request* request) {
    request->link_is_cut = 1;
}
static void broken_queue_pair(struct request* request) {
    request->qp_is_broken = 1;
}
static void wrong_answer(struct request* request) {
    request->answer_is_wrong = 1;
}

/* YOUR TURN 1: what does h0's completion say? One status for each of the five functions above,
   in their order. The IBV_WC_ names are in the table of the README. */
static const enum ibv_wc_status named[5] = {IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS,
                                            IBV_WC_SUCCESS, IBV_WC_SUCCESS};

/* ---- the status is named: make the mistake --------------------------------------------------- */

/* h0 shall see IBV_WC_RNR_RETRY_EXC_ERR. */
static void receiver_not_ready(struct request* request) {
    /* YOUR TURN 2: h1 posts no receive, and h0 does not try for ever. */
    (void)request;
}

/* h0 shall see IBV_WC_REM_INV_REQ_ERR (and h1 IBV_WC_LOC_LEN_ERR). */
static void invalid_request(struct request* request) {
    /* YOUR TURN 3: a SEND that does not fit. */
    (void)request;
}

/* h0 shall see IBV_WC_REM_OP_ERR: h1 cannot carry out what is right. */
static void remote_cannot(struct request* request) {
    /* YOUR TURN 4: h1's receive names memory that its device may not touch. */
    (void)request;
}

/* h0 shall see IBV_WC_LOC_PROT_ERR, but this time its key is right. */
static void beyond_region(struct request* request) {
    /* YOUR TURN 5: more bytes than the region has (LAB_BYTES). */
    (void)request;
}

/* h0 shall see IBV_WC_REM_ACCESS_ERR, but this time its rkey is right. */
static void beyond_remote_region(struct request* request) {
    /* YOUR TURN 6: a READ that begins within h1's region and ends behind it. */
    (void)request;
}

/* ---- the laboratory -------------------------------------------------------------------------- */

static void break_own_queue_pair(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    must(ibv_modify_qp(h0.qp, &attr, IBV_QP_STATE) == 0, "to ERR");
}

static void prepare_world(const struct request* request) {
    if (request->link_is_cut) {
        must(simverbs_set_link("h0-s0", 0) == 0, simverbs_last_error());
    }
    if (request->answer_is_wrong) {
        const uint8_t read_response_only = 0x10;
        must(simverbs_rewrite_nth("h1-s0", "h1", 1, read_response_only, NULL) == 0,
             simverbs_last_error());
    }
    if (request->qp_is_broken) {
        break_own_queue_pair();
    }
}

static void post_receive(const struct request* request) {
    struct ibv_sge sge = lab_sge(&h1, 0, request->receive_length);
    sge.lkey = request->receive_lkey;
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(h1.qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void post_send(const struct request* request) {
    struct ibv_sge sge = {
        .addr = (uintptr_t)h0.memory, .length = request->length, .lkey = request->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = request->opcode, .send_flags = IBV_SEND_SIGNALED};
    if (request->opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = request->remote_addr;
        wr.wr.rdma.rkey = request->rkey;
    }
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
}

/* Takes what h1 has got, so that nothing is left unread. */
static void drain_h1(void) {
    struct ibv_wc wc;
    while (ibv_poll_cq(h1.cq, 1, &wc) == 1) {
        printf("    h1: %s\n", lab_status_name(wc.status));
    }
}

/* Returns what h0's completion says of a request spoiled by `spoil`. */
static enum ibv_wc_status experiment(void (*spoil)(struct request*)) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    struct request request = {.opcode = IBV_WR_SEND,
                              .length = LENGTH,
                              .lkey = h0.mr->lkey,
                              .remote_addr = (uintptr_t)h1.memory,
                              .rkey = h1.mr->rkey,
                              .receive_length = LENGTH,
                              .receive_lkey = h1.mr->lkey,
                              .rnr_retry = 7};
    spoil(&request);
    lab_prepare(&h0, &h1);
    if (request.opcode == IBV_WR_SEND && request.receive_length > 0) {
        post_receive(&request);
    }
    lab_to_rtr(h0.qp, h1.port.lid, h1.qp->qp_num);
    lab_to_rtr(h1.qp, h0.port.lid, h0.qp->qp_num);
    lab_to_rts(h0.qp, 14, 7, request.rnr_retry);
    lab_to_rts(h1.qp, 14, 7, 7);
    prepare_world(&request);
    post_send(&request);
    const enum ibv_wc_status status = lab_wait(h0.cq).status;
    drain_h1();
    lab_close(&h0);
    lab_close(&h1);
    must(simverbs_set_link("h0-s0", 1) == 0, simverbs_last_error());
    must(simverbs_advance_ps(10LL * 1000 * 1000 * 1000) == 0, "time for the port to come up");
    return status;
}

static void show(int number, const char* what, enum ibv_wc_status wanted, enum ibv_wc_status is) {
    if (is == wanted) {
        printf("%2d %s: %s, as named\n", number, what, lab_status_name(is));
    } else {
        printf("%2d %s: %s, NOT %s as named\n", number, what, lab_status_name(is),
               lab_status_name(wanted));
    }
}

int main(void) {
    static void (*const spoiled[5])(struct request*) = {wrong_lkey, wrong_rkey, cut_link,
                                                        broken_queue_pair, wrong_answer};
    static const char* const names[5] = {"wrong lkey", "wrong rkey", "cut link",
                                         "broken queue pair", "wrong answer"};
    for (int i = 0; i < 5; ++i) {
        show(i + 1, names[i], named[i], experiment(spoiled[i]));
    }
    show(6, "receiver not ready", IBV_WC_RNR_RETRY_EXC_ERR, experiment(receiver_not_ready));
    show(7, "invalid request", IBV_WC_REM_INV_REQ_ERR, experiment(invalid_request));
    show(8, "remote cannot", IBV_WC_REM_OP_ERR, experiment(remote_cannot));
    show(9, "beyond the region", IBV_WC_LOC_PROT_ERR, experiment(beyond_region));
    show(10, "beyond the remote region", IBV_WC_REM_ACCESS_ERR, experiment(beyond_remote_region));
    return EXIT_SUCCESS;
}
