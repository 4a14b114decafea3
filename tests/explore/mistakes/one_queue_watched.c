/* Only the completions of receives are watched: a send that fails is never seen. */
#include "ends.h"

int main(void) {
    open_ends(7, 7);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    struct ibv_wc wc;
    while (ibv_poll_cq(far_end.cq, 1, &wc) == 0) {
#ifdef MENDED
        struct ibv_wc sent;
        check(ibv_poll_cq(near_end.cq, 1, &sent) == 0 || sent.status == IBV_WC_SUCCESS, "the send");
#endif
    }
    check(wc.status == IBV_WC_SUCCESS, "the receive");
    return 0;
}
