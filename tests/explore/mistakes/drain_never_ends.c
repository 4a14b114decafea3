/* A sender stops by SQD and waits until its queue is drained. A queue pair that fails meanwhile
 * goes to ERR, and is never in SQD again. */
#include "ends.h"

int main(void) {
    open_ends(kPatient);
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    post_send(&near_end, &wr, 8);
    to_state(near_end.qp, IBV_QPS_SQD);
    struct ibv_qp_attr attr = {.sq_draining = 1};
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    for (int polls = 1; attr.qp_state != IBV_QPS_SQD || attr.sq_draining; ++polls) {
        struct ibv_qp_init_attr init;
        ibv_poll_cq(near_end.cq, 1, &wc);
        check(ibv_query_qp(near_end.qp, &attr, IBV_QP_STATE, &init) == 0, "ibv_query_qp");
#ifdef MENDED
        check(attr.qp_state != IBV_QPS_ERR, "a queue pair that works");
#endif
        if (polls % kEmptyPolls == 0) {
            check_device(&far_end);
        }
    }
    check(wc.status == IBV_WC_SUCCESS, "the WRITE");
    assert(far_end.memory[0] == near_end.memory[0]);
    close_ends();
    return 0;
}
