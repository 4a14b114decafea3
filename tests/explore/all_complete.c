/* Posts requests and asserts that each completes once, with success or without. */
#include "ends.h"

enum { kRequests = 3 };

int main(void) {
    int completions[kRequests] = {0};
    int failed = 0;
    open_ends(kPatient);
    for (int i = 0; i < kRequests; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        wr.wr_id = (uint64_t)i;
        post_send(&near_end, &wr, 8);
    }
    for (int polls = 0; polls < kEmptyPolls;) {
        struct ibv_wc wc;
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 0) {
            ++polls;
            continue;
        }
        ++completions[wc.wr_id];
        failed = failed || wc.status != IBV_WC_SUCCESS;
    }
    check_device(&near_end);
    for (int i = 0; i < kRequests; ++i) {
        assert(completions[i] == 1);
    }
    close_ends();
    return failed;
}
