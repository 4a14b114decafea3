/* Lesson 12: a completion queue that is large enough, and a queue pair that is shut down without
 * losing a buffer. h1 takes a break while messages come in and its own go out. */
#include <simverbs/simverbs.h>

#include "lab.h"

enum { SENDS = 8, RECEIVES = 24, LEFT = 6 /* receives that nothing comes for */, MARKER = 999 };
static const int64_t kBreak = 1000LL * 1000 * 1000; /* ps: 1 ms */

static struct lab_host h0, h1;

/* Entries of h1's completion queue. */
static int entries_of_cq(void) {
    return SENDS + RECEIVES;
}

static int post_receive(struct lab_host* host, uint64_t id) {
    struct ibv_sge sge = lab_sge(host, 0, 8);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    return ibv_post_recv(host->qp, &wr, &bad);
}

static void post_send(struct lab_host* host, uint64_t id) {
    struct ibv_sge sge = lab_sge(host, 64, 8);
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(host->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void create_qp(struct lab_host* host) {
    struct ibv_qp_init_attr init = {
        .send_cq = host->cq,
        .recv_cq = host->cq,
        .cap = {.max_send_wr = 32, .max_recv_wr = 32, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    host->qp = ibv_create_qp(host->pd, &init);
    must(host->qp != NULL, "ibv_create_qp");
    lab_to_init(host->qp);
}

static void set_up(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    must(ibv_destroy_cq(h1.cq) == 0, "ibv_destroy_cq");
    h1.cq = ibv_create_cq(h1.context, entries_of_cq(), NULL, NULL, 0);
    must(h1.cq != NULL, "ibv_create_cq");
    create_qp(&h0);
    create_qp(&h1);
    for (uint64_t i = 0; i < RECEIVES; ++i) {
        must(post_receive(&h1, i) == 0, "ibv_post_recv");
    }
    for (uint64_t i = 0; i < SENDS; ++i) {
        must(post_receive(&h0, i) == 0, "ibv_post_recv");
    }
    lab_join(&h0, &h1);
}

/* How many completions with success are in a queue. */
static int drain(struct ibv_cq* cq) {
    struct ibv_wc wc;
    int count = 0;
    while (ibv_poll_cq(cq, 1, &wc) == 1) {
        count += wc.status == IBV_WC_SUCCESS;
    }
    return count;
}

static void busy_hour(void) {
    for (uint64_t i = 0; i < RECEIVES; ++i) {
        post_send(&h0, i);
    }
    for (uint64_t i = 0; i < SENDS; ++i) {
        post_send(&h1, i);
    }
    must(simverbs_advance_ps(kBreak) == 0, "a break");
    const int at_h0 = drain(h0.cq);
    const int at_h1 = drain(h1.cq);
    printf("after the break: h0 %d, h1 %d completions\n", at_h0, at_h1);
}

/* h1's queue pair has LEFT receives posted, and shall end. What the device has of its buffers comes
 * back; how many that is. */
static int shut_down(void) {
    int given_back = 0;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    must(ibv_modify_qp(h1.qp, &attr, IBV_QP_STATE) == 0, "to ERR");

    must(post_receive(&h1, MARKER) == 0, "ibv_post_recv");

    for (;;) {
        const struct ibv_wc wc = lab_wait(h1.cq);
        must(wc.status == IBV_WC_WR_FLUSH_ERR, ibv_wc_status_str(wc.status));
        if (wc.wr_id == MARKER) {
            break;
        }
        ++given_back;
    }
    return given_back;
}

int main(void) {
    set_up();
    busy_hour();
    for (uint64_t i = 0; i < LEFT; ++i) {
        must(post_receive(&h1, i) == 0, "ibv_post_recv");
    }
    printf("given back: %d of %d\n", shut_down(), LEFT);
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
