/* Every fourth request is signaled, so a completion counts for four. After a failure each request
 * completes, signaled or not. */
#include "ends.h"

enum { kRequests = 8, kBatch = 4 };

static void create_quiet_queue(void) {
    struct ibv_qp_init_attr init = {
        .send_cq = near_end.cq,
        .recv_cq = near_end.cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    near_end.qp = ibv_create_qp(near_end.pd, &init);
    check(near_end.qp != NULL, "ibv_create_qp");
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_quiet_queue();
    create_qp(&far_end, IBV_QPT_RC, NULL);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    for (uint64_t i = 1; i <= kRequests; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        wr.wr_id = i;
        wr.send_flags = i % kBatch == 0 ? IBV_SEND_SIGNALED : 0;
        post_send(&near_end, &wr, 8);
    }
    uint64_t completed = 0;
    int failed = 0;
    while (completed < kRequests) {
        const struct ibv_wc wc = next_of(&near_end);
        failed = failed || wc.status != IBV_WC_SUCCESS;
#ifdef MENDED
        completed = wc.wr_id;
#else
        completed += kBatch;
#endif
    }
    struct ibv_wc none;
    assert(ibv_poll_cq(near_end.cq, 1, &none) == 0); /* each request has completed once */
    close_ends();
    return failed;
}
