/* A server polls all completions, does its work, and asks for the next event then. What came during
 * the work makes no event, and is not polled either. */
#include <fcntl.h>

#include "ends.h"

enum { kMessages = 2, kReplyAt = 64 };

static struct ibv_comp_channel* channel;
static struct ibv_cq* sends; /* of the server */
static int posted, received;

static void open_server(void) {
    channel = ibv_create_comp_channel(far_end.context);
    check(channel != NULL && fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0, "a channel");
    sends = far_end.cq;
    far_end.cq = ibv_create_cq(far_end.context, 16, NULL, channel, 0);
    check(far_end.cq != NULL, "ibv_create_cq");
    struct ibv_qp_init_attr init = {
        .send_cq = sends,
        .recv_cq = far_end.cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    far_end.qp = ibv_create_qp(far_end.pd, &init);
    check(far_end.qp != NULL, "ibv_create_qp");
}

/* The client sends the next message when it has the reply to the last one. */
static void client(int has_reply) {
    struct ibv_wc wc;
    if (!has_reply && ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
        check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
        has_reply = wc.opcode == IBV_WC_RECV;
    }
    if (has_reply && posted < kMessages) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        post_receive(&near_end, 0, kReplyAt, 64);
        post_send(&near_end, &wr, 64);
        ++posted;
    }
}

static void await_event(void) {
    struct ibv_cq* cq = NULL;
    void* context = NULL;
    for (int i = 0; ibv_get_cq_event(channel, &cq, &context) != 0; ++i) {
        check(i < kEmptyPolls, "an event");
        client(0);
    }
    ibv_ack_cq_events(cq, 1);
}

static void work(void) {
    struct ibv_wc wc;
    struct ibv_send_wr reply = {.opcode = IBV_WR_SEND};
    post_send(&far_end, &reply, 64);
    for (int i = 0; ibv_poll_cq(sends, 1, &wc) == 0; ++i) {
        check(i < kEmptyPolls, "a completion");
        client(0);
    }
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    open_server();
    create_qp(&near_end, IBV_QPT_RC, NULL);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    for (uint64_t i = 0; i < kMessages; ++i) {
        post_receive(&far_end, i, 0, 64);
    }
    check(ibv_req_notify_cq(far_end.cq, 0) == 0, "ibv_req_notify_cq");
    client(1);
    while (received < kMessages) {
        struct ibv_wc wc;
        int found = 0;
        await_event();
#ifdef MENDED
        check(ibv_req_notify_cq(far_end.cq, 0) == 0, "ibv_req_notify_cq");
#endif
        for (; ibv_poll_cq(far_end.cq, 1, &wc) == 1; ++found) {
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
        }
        received += found;
        for (; found > 0; --found) {
            work();
        }
#ifndef MENDED
        check(ibv_req_notify_cq(far_end.cq, 0) == 0, "ibv_req_notify_cq");
#endif
    }
    return 0;
}
