/* A queue pair that was reset has no receives any more. After a failure the sender tries again, and
 * its peer is never ready. */
#include "ends.h"

enum { kAttempts = 3 };

int main(void) {
    open_ends(kPatient);
    struct ibv_wc wc;
    int attempts = 1;
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    for (int polls = 1;; ++polls) {
        if (polls % kEmptyPolls == 0) {
            check_end(&near_end);
            check_end(&far_end);
        }
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 0) {
            continue;
        }
        if (wc.status == IBV_WC_SUCCESS) {
            break;
        }
        check(++attempts <= kAttempts, "a connection that works");
        reconnect();
#ifdef MENDED
        post_receive(&far_end, 0, 0, 64);
#endif
        send_text("hello");
    }
    next_success(&far_end);
    assert(strcmp((char*)far_end.memory, "hello") == 0);
    close_ends();
    return 0;
}
