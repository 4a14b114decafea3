/* An atomic request that failed is posted again on a new connection. The first one can have been
 * executed all the same, and the counter is then increased twice. */
#include "ends.h"

enum { kAttempts = 3, kCounterAt = 1024 };

int main(void) {
    open_ends(kPatient);
    uint64_t counter = 0;
    enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
    for (int i = 0; i < kAttempts && status != IBV_WC_SUCCESS; ++i) {
        if (i > 0) {
            reconnect();
        }
#ifdef MENDED /* from 0 to 1, which changes nothing the second time */
        struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
        wr.wr.atomic.compare_add = 0;
        wr.wr.atomic.swap = 1;
#else
        struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
        wr.wr.atomic.compare_add = 1;
#endif
        wr.wr.atomic.remote_addr = (uintptr_t)far_end.memory + kCounterAt;
        wr.wr.atomic.rkey = far_end.mr->rkey;
        post_send(&near_end, &wr, 8);
        status = next_of(&near_end).status;
    }
    check(status == IBV_WC_SUCCESS, "the atomic");
    memcpy(&counter, far_end.memory + kCounterAt, sizeof counter);
    assert(counter == 1);
    close_ends();
    return 0;
}
