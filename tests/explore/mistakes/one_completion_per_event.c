/* For each event one completion is polled. An acknowledgement can complete several requests, for
 * which only one event comes. */
#include <fcntl.h>

#include "ends.h"

enum { kRequests = 2 };

static struct ibv_comp_channel* channel;

static void create_channel(void) {
    channel = ibv_create_comp_channel(near_end.context);
    check(channel != NULL, "ibv_create_comp_channel");
    check(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    check(ibv_destroy_cq(near_end.cq) == 0, "ibv_destroy_cq");
    near_end.cq = ibv_create_cq(near_end.context, 16, NULL, channel, 0);
    check(near_end.cq != NULL, "ibv_create_cq");
}

static void await_event(void) {
    struct ibv_cq* cq = NULL;
    void* context = NULL;
    struct ibv_wc none;
    for (int i = 0; ibv_get_cq_event(channel, &cq, &context) != 0; ++i) {
        check(i < kEmptyPolls, "an event");
        ibv_poll_cq(far_end.cq, 1, &none); /* lets time pass */
    }
    ibv_ack_cq_events(cq, 1);
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_channel();
    create_qp(&near_end, IBV_QPT_RC, NULL);
    create_qp(&far_end, IBV_QPT_RC, NULL);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    check(ibv_req_notify_cq(near_end.cq, 0) == 0, "ibv_req_notify_cq");
    for (int i = 0; i < kRequests; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        post_send(&near_end, &wr, 64);
    }
    for (int completed = 0; completed < kRequests;) {
        struct ibv_wc wc;
        await_event();
        check(ibv_req_notify_cq(near_end.cq, 0) == 0, "ibv_req_notify_cq");
#ifdef MENDED
        while (ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
#else
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
#endif
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            ++completed;
        }
    }
    check(ibv_destroy_qp(near_end.qp) == 0 && ibv_destroy_cq(near_end.cq) == 0, "queues first");
    check(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
    return 0;
}
