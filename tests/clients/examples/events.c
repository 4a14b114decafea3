/* Instead of polling: a thread-free wait for a completion by its channel, and the async event of a
   queue pair that breaks. Channels and contexts have descriptors for poll(2). */
#include <poll.h>

#include "end.h"

static struct end a, b;

static void wait_readable(int descriptor, const char* what) {
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    check(poll(&wait, 1, 10000) == 1, what);
}

int main(void) {
    open_end(&a, 0);
    open_end(&b, 1);
    struct ibv_comp_channel* channel = ibv_create_comp_channel(b.context);
    check(channel != NULL, "ibv_create_comp_channel");
    check(ibv_destroy_cq(b.cq) == 0, "ibv_destroy_cq");
    b.cq = ibv_create_cq(b.context, 16, &b, channel, 0);
    check(b.cq != NULL, "ibv_create_cq with a channel");
    create_qp(&a, IBV_QPT_RC, NULL);
    create_qp(&b, IBV_QPT_RC, NULL);
    connect_ends(&a, &b);

    /* Ask first, then look, then wait: what comes between looking and waiting wakes. */
    check(ibv_req_notify_cq(b.cq, 0) == 0, "ibv_req_notify_cq");
    struct ibv_wc wc;
    check(ibv_poll_cq(b.cq, 1, &wc) == 0, "nothing yet");
    post_receive(&b, 1, 0, 64);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post_send(&a, &wr, 64);
    wait_readable(channel->fd, "a completion event");
    struct ibv_cq* cq = NULL;
    void* context = NULL;
    check(ibv_get_cq_event(channel, &cq, &context) == 0, "ibv_get_cq_event");
    check(cq == b.cq && context == &b, "the event names its queue and our pointer");
    ibv_ack_cq_events(cq, 1);
    wait_for(&b, IBV_WC_SUCCESS);
    wait_for(&a, IBV_WC_SUCCESS);

    /* A WRITE with a key that nobody has: an error here, and an event there. */
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
    wr.wr.rdma.rkey = ~b.mr->rkey;
    post_send(&a, &wr, 64);
    wait_for(&a, IBV_WC_REM_ACCESS_ERR);
    wait_readable(b.context->async_fd, "an async event");
    struct ibv_async_event event;
    check(ibv_get_async_event(b.context, &event) == 0, "ibv_get_async_event");
    check(event.event_type == IBV_EVENT_QP_ACCESS_ERR, ibv_event_type_str(event.event_type));
    check(event.element.qp == b.qp, "the event names its queue pair");
    ibv_ack_async_event(&event); /* ibv_destroy_qp waits for this */

    close_end(&a);
    check(ibv_destroy_qp(b.qp) == 0 && ibv_destroy_cq(b.cq) == 0, "queues before their channel");
    check(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
    b.qp = NULL;
    b.cq = ibv_create_cq(b.context, 1, NULL, NULL, 0);
    check(b.cq != NULL, "ibv_create_cq");
    close_end(&b);
    puts("a completion event and an async event");
    return EXIT_SUCCESS;
}
