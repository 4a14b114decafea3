/* The asynchronous event of a queue pair is read and not acknowledged. ibv_destroy_qp() waits for
 * that. */
#include <fcntl.h>

#include "ends.h"

/* Says what has happened to an end whose request failed. */
static void report(const struct end* end) {
    struct ibv_async_event event;
    check(fcntl(end->context->async_fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    while (ibv_get_async_event(end->context, &event) == 0) {
        fprintf(stderr, "%s\n", ibv_event_type_str(event.event_type));
#ifdef MENDED
        ibv_ack_async_event(&event);
#endif
    }
}

int main(void) {
    open_ends(kPatient);
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    post_send(&near_end, &wr, 8);
    const struct ibv_wc wc = next_of(&near_end);
    if (wc.status != IBV_WC_SUCCESS) {
        report(&near_end);
        report(&far_end);
    }
    close_ends();
    return wc.status != IBV_WC_SUCCESS;
}
