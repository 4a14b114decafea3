/* A program gives up at events that it does not know. The subnet manager may ask for registration
 * again, or add a P_Key, at any time: no connection is in danger. */
#include <fcntl.h>

#include "ends.h"

static void look_at_events(const struct end* end) {
    struct ibv_async_event event;
    while (ibv_get_async_event(end->context, &event) == 0) {
        const enum ibv_event_type type = event.event_type;
        fprintf(stderr, "%s\n", ibv_event_type_str(type));
        ibv_ack_async_event(&event);
        switch (type) {
            case IBV_EVENT_DEVICE_FATAL:
                check(0, "a device that works");
                break;
            case IBV_EVENT_QP_FATAL:
            case IBV_EVENT_PORT_ERR:
            case IBV_EVENT_PORT_ACTIVE:
                break; /* the completions tell */
            default:
#ifndef MENDED
                check(0, "an event that this program knows");
#endif
                break;
        }
    }
}

int main(void) {
    open_ends(kPatient);
    check(fcntl(near_end.context->async_fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    struct ibv_wc wc = {0};
    int polls = 0;
    for (post_send(&near_end, &wr, 8); ibv_poll_cq(near_end.cq, 1, &wc) == 0; ++polls) {
        look_at_events(&near_end);
        check(polls < kEmptyPolls, "a completion");
    }
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    close_ends();
    return 0;
}
