/* Lesson 11: how long a device waits and how often it tries again. Three connections, three wishes;
 * you set the four numbers that fulfil them. */
#include <simverbs/simverbs.h>

#include "lab.h"

enum { TIMEOUT_UNIT_NS = 4096 };
static const int64_t kMs = 1000LL * 1000 * 1000; /* ps */
static struct lab_host h0, h1;

/* The attributes that ibv_modify_qp() is told of it; h1's timer goes into RTR, the others into RTS.
 */
struct patience {
    uint8_t timeout;       /* 0 to 31: 4.096 us * 2^timeout without an answer, 0: for ever */
    uint8_t retry_cnt;     /* 0 to 7 */
    uint8_t rnr_retry;     /* 0 to 6, 7: for ever */
    uint8_t min_rnr_timer; /* of the receiver: a code, see the README */
};

/* A link that goes away for 50 ms shall be survived; and yet a peer that is dead shall be noticed
 * within a second. */
static struct patience survives_a_flap(void) {
    /* YOUR TURN 1: how long do 4.096 us * 2^timeout * (retry_cnt + 1) have to be, and may be at
       most? The device may wait up to four times as long as you ask for; simverbs takes what you
       ask for. */
    return (struct patience){.timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12};
}

/* A receiver that posts its receive 30 ms late shall be waited for; one that never does shall be
 * given up within half a second. */
static struct patience waits_for_receiver(void) {
    /* YOUR TURN 2: the receiver asks to be left alone for min_rnr_timer (README: 14 is 1.28 ms,
       20 is 10.24 ms, 24 is 40.96 ms); the sender tries again rnr_retry times. */
    return (struct patience){.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 14};
}

/* A heartbeat: who does not answer within 10 ms counts as dead. */
static struct patience heartbeat(void) {
    /* YOUR TURN 3: it may try again, but all of it within 10 ms. */
    return (struct patience){.timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12};
}

/* ---- the laboratory -------------------------------------------------------------------------- */

static void connect_with(struct patience patience) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_prepare(&h0, &h1);
    lab_to_rtr(h0.qp, h1.port.lid, h1.qp->qp_num);
    lab_to_rtr(h1.qp, h0.port.lid, h0.qp->qp_num);
    lab_to_rts(h0.qp, patience.timeout, patience.retry_cnt, patience.rnr_retry);
    lab_to_rts(h1.qp, 14, 7, 7);
    struct ibv_qp_attr attr = {.min_rnr_timer = patience.min_rnr_timer};
    must(ibv_modify_qp(h1.qp, &attr, IBV_QP_MIN_RNR_TIMER) == 0, "a code from 0 to 31");
}

static void post(struct lab_host* host, int is_send) {
    struct ibv_sge sge = lab_sge(host, 0, 8);
    struct ibv_send_wr* bad = NULL;
    struct ibv_recv_wr* bad_receive = NULL;
    struct ibv_send_wr send = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
    must((is_send ? ibv_post_send(host->qp, &send, &bad)
                  : ibv_post_recv(host->qp, &receive, &bad_receive)) == 0,
         "a request that is posted");
}

static int64_t now(void) {
    int64_t ps = 0;
    must(simverbs_now_ps(&ps) == 0, "the time");
    return ps;
}

static void pass(int64_t ms) {
    must(simverbs_advance_ps(ms * kMs) == 0, "time that passes");
}

/* Prints what h0 sees, and how long after `since`. It waits two seconds at most. */
static void show(const char* what, int64_t since) {
    struct ibv_wc wc;
    while (now() - since < 2000 * kMs) {
        if (ibv_poll_cq(h0.cq, 1, &wc) == 1) {
            printf("%s: %s after %ld ms\n", what, ibv_wc_status_str(wc.status),
                   (long)((now() - since) / kMs));
            return;
        }
        pass(1);
    }
    printf("%s: nothing after 2000 ms\n", what);
}

static void end(void) {
    struct ibv_wc wc;
    while (ibv_poll_cq(h1.cq, 1, &wc) == 1) {
        must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    }
    lab_close(&h0);
    lab_close(&h1);
    must(simverbs_set_link("h0-s0", 1) == 0, simverbs_last_error());
    pass(10);
}

static void link_goes(int comes_back) {
    connect_with(survives_a_flap());
    post(&h1, 0);
    must(simverbs_set_link("h0-s0", 0) == 0, simverbs_last_error());
    const int64_t since = now();
    post(&h0, 1);
    if (comes_back) {
        pass(50);
        must(simverbs_set_link("h0-s0", 1) == 0, simverbs_last_error());
    }
    show(comes_back ? "link that flaps" : "link that is dead", since);
    end();
}

static void receiver_sleeps(int wakes) {
    connect_with(waits_for_receiver());
    const int64_t since = now();
    post(&h0, 1);
    if (wakes) {
        pass(30);
        post(&h1, 0);
    }
    show(wakes ? "receiver that is late" : "receiver that never comes", since);
    end();
}

static void heart_stops(void) {
    connect_with(heartbeat());
    post(&h1, 0);
    must(simverbs_set_link("h0-s0", 0) == 0, simverbs_last_error());
    const int64_t since = now();
    post(&h0, 1);
    show("heart that stops", since);
    end();
}

int main(void) {
    link_goes(1);
    link_goes(0);
    receiver_sleeps(1);
    receiver_sleeps(0);
    heart_stops();
    return EXIT_SUCCESS;
}
