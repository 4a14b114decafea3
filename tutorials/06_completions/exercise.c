/* Lesson 6: wait for completions without burning a processor. h0 sends bursts of messages; h1
 * sleeps until its completion channel wakes it. */
#include <poll.h>

#include <simverbs/simverbs.h>

#include "lab.h"

enum { BURSTS = 3, OF_A_BURST = 2, MESSAGES = BURSTS * OF_A_BURST, NEVER_MS = 500 };
static const int64_t kLongEnough = 100 * 1000 * 1000; /* ps: 100 us */

static struct lab_host h0, h1;
static struct ibv_comp_channel* channel;
static int bursts_sent;

static void send_burst(void) {
    for (int i = 0; i < OF_A_BURST; ++i) {
        struct ibv_sge sge = lab_sge(&h0, 0, 8);
        struct ibv_send_wr wr = {
            .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
        struct ibv_send_wr* bad = NULL;
        must(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
    }
    ++bursts_sent;
    must(simverbs_advance_ps(kLongEnough) == 0, "time to pass"); /* now it has arrived */
}

/* Polls h1's queue once: 1 or 0. It is made to be mean: at the very moment when the queue has been
 * found empty, and before you can do anything about it, the next burst comes in. */
static int poll_h1(struct ibv_wc* wc) {
    const int found = ibv_poll_cq(h1.cq, 1, wc);
    must(found >= 0, "ibv_poll_cq");
    if (found == 0 && bursts_sent < BURSTS) {
        send_burst();
    }
    return found;
}

static void arm(void) {
    /* YOUR TURN 2: ask for an event at the next completion: ibv_req_notify_cq(h1.cq, 0). It
       holds for one event; who wants another asks again. */
}

/* Sleeps until there is an event, and takes it. */
static void wait_for_event(void) {
    struct pollfd sleep = {.fd = channel->fd, .events = POLLIN};
    must(poll(&sleep, 1, NEVER_MS) == 1, "an event that wakes h1, while messages lie in its queue");
    /* YOUR TURN 3: take the event with ibv_get_cq_event(channel, &cq, &context), and acknowledge
       it with ibv_ack_cq_events(cq, 1): ibv_destroy_cq() waits until all have been. */
    must(poll(&sleep, 1, 0) == 0, "the event is still in the channel");
}

/* Takes what is in the queue; how many messages it was. */
static int drain(void) {
    struct ibv_wc wc;
    int count = 0;
    while (poll_h1(&wc) == 1) {
        must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
        ++count;
    }
    return count;
}

static void open_h1_with_channel(void) {
    lab_open(&h1, 1);
    must(ibv_destroy_cq(h1.cq) == 0, "ibv_destroy_cq"); /* it has no channel */
    /* YOUR TURN 1: make a completion channel of h1.context with ibv_create_comp_channel(), and a
       completion queue of 16 entries that reports to it: ibv_create_cq(context, entries, NULL,
       channel, 0). */
    channel = NULL;
    h1.cq = ibv_create_cq(h1.context, 16, NULL, NULL, 0);
    must(h1.cq != NULL, "ibv_create_cq");
}

int main(void) {
    lab_open(&h0, 0);
    open_h1_with_channel();
    lab_prepare(&h0, &h1);
    for (int i = 0; i < MESSAGES; ++i) {
        struct ibv_sge sge = lab_sge(&h1, 0, 8);
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        must(ibv_post_recv(h1.qp, &wr, &bad) == 0, "ibv_post_recv");
    }
    lab_join(&h0, &h1);
    must(channel != NULL && h1.cq->channel == channel, "a completion queue with a channel");

    arm();
    send_burst();
    int messages = 0;
    while (messages < MESSAGES) {
        wait_for_event();
        /* YOUR TURN 4: arm() and messages += drain(), in the right order. Think of the burst
           that comes in between the two. */
        messages += drain();
        printf("%d messages so far\n", messages);
    }

    for (int i = 0; i < MESSAGES; ++i) {
        lab_wait_success(h0.cq);
    }
    lab_close(&h0);
    /* YOUR TURN 5: end the channel with ibv_destroy_comp_channel(). Its completion queue goes
       first, and the queue pair before that; lab_close() then finds nothing left of the two. */
    lab_close(&h1);
    return EXIT_SUCCESS;
}
