/* A program gives up at IBV_EVENT_PORT_ERR. A link that is down for a moment fails no request: the
 * connection sends again when the port is active. */
#include <fcntl.h>

#include "ends.h"

static void look_at_events(const struct end* end) {
    struct ibv_async_event event;
    while (ibv_get_async_event(end->context, &event) == 0) {
        const enum ibv_event_type type = event.event_type;
        fprintf(stderr, "%s\n", ibv_event_type_str(type));
        ibv_ack_async_event(&event);
        check(type != IBV_EVENT_DEVICE_FATAL, "a device that works");
#ifndef MENDED
        check(type != IBV_EVENT_PORT_ERR, "an active port");
#endif
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
