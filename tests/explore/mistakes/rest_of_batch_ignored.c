/* ibv_poll_cq() has room for several completions, and only the first one of them is looked at. At
 * the usual pace there is never a second one. */
#include "ends.h"

enum { kMessages = 3, kRoom = 4 };

int main(void) {
    open_ends(kPatient);
    struct ibv_wc wcs[kRoom];
    int completed = 0;
    for (int i = 0; i < kMessages; ++i) {
        struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
        post_send(&near_end, &wr, 8);
    }
    for (int polls = 0; completed < kMessages; ++polls) {
        const int found = ibv_poll_cq(near_end.cq, kRoom, wcs);
        check(found >= 0 && polls < kEmptyPolls, "a completion");
#ifdef MENDED
        for (int i = 0; i < found; ++i) {
#else
        for (int i = 0; i < (found > 0); ++i) {
#endif
            check(wcs[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wcs[i].status));
            ++completed;
        }
    }
    close_ends();
    return 0;
}
