/* When its control connection fails, a server waits until all receives of the data connection have
 * come back. They do so only from a queue pair in state ERR, and this one still works. */
#include "ends.h"

enum { kControl = 1, kData = 2, kReceives = 2 };

int main(void) {
    open_ends(kPatient);
    struct ibv_qp* const near_data = another_qp(&near_end, NULL);
    struct ibv_qp* const far_data = another_qp(&far_end, NULL);
    connect_pair(near_data, far_data, kPatient);
    receive_on(far_end.qp, &far_end, kControl, 0, 64);
    for (int i = 0; i < kReceives; ++i) {
        receive_on(far_data, &far_end, kData, 64, 64);
    }
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post_send(&near_end, &wr, 8); /* a command */

    const int failed = next_of(&far_end).status != IBV_WC_SUCCESS;
    if (failed) {
#ifdef MENDED
        to_state(far_data, IBV_QPS_ERR);
#endif
        struct ibv_wc wc;
        int polls = 0;
        for (int left = kReceives; left > 0; left -= ibv_poll_cq(far_end.cq, 1, &wc)) {
            if (++polls % kEmptyPolls == 0) {
                check_device(&far_end);
            }
        }
    } else {
        next_success(&near_end);
    }
    check(ibv_destroy_qp(near_data) == 0 && ibv_destroy_qp(far_data) == 0, "ibv_destroy_qp");
    close_ends();
    return failed;
}
