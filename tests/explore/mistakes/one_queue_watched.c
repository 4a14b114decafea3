/* Only the completions of receives are watched: a send that fails is never seen. */
#include "ends.h"

int main(void) {
    open_ends(kPatient);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    struct ibv_wc wc;
    for (int i = 1; ibv_poll_cq(far_end.cq, 1, &wc) == 0; ++i) {
#ifdef MENDED
        struct ibv_wc sent;
        check(ibv_poll_cq(near_end.cq, 1, &sent) == 0 || sent.status == IBV_WC_SUCCESS, "the send");
#endif
        if (i % kEmptyPolls == 0) {
            check_device(&near_end);
            check_device(&far_end);
        }
    }
    check(wc.status == IBV_WC_SUCCESS, "the receive");
    return 0;
}
