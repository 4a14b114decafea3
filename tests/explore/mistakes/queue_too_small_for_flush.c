/* The completion queue has room for the signaled sends, which are one in four. After a failure
 * every send completes, and the queue overflows. */
#include "ends.h"

enum { kRequests = 8, kBatch = 4 };

static void create_queues(void) {
#ifdef MENDED
    const int room = kRequests;
#else
    const int room = kRequests / kBatch;
#endif
    check(ibv_destroy_cq(near_end.cq) == 0, "ibv_destroy_cq");
    near_end.cq = ibv_create_cq(near_end.context, room, NULL, NULL, 0);
    check(near_end.cq != NULL, "ibv_create_cq");
    struct ibv_qp_init_attr init = {.send_cq = near_end.cq,
                                    .recv_cq = near_end.cq,
                                    .cap = {.max_send_wr = kRequests, .max_send_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    near_end.qp = ibv_create_qp(near_end.pd, &init);
    check(near_end.qp != NULL, "ibv_create_qp");
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_queues();
    create_qp(&far_end, IBV_QPT_RC, NULL);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    for (uint64_t i = 1; i <= kRequests; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        wr.wr_id = i;
        wr.send_flags = i % kBatch == 0 ? IBV_SEND_SIGNALED : 0;
        post_send(&near_end, &wr, 8);
    }
    uint64_t returned = 0; /* the last request whose buffer is free again */
    int failed = 0;
    for (int polls = 0; polls < kEmptyPolls && returned < kRequests; ++polls) {
        struct ibv_wc wc;
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
            returned = wc.wr_id;
            failed = failed || wc.status != IBV_WC_SUCCESS;
        }
    }
    check_device(&near_end);
    assert(returned == kRequests);
    close_ends();
    return failed;
}
