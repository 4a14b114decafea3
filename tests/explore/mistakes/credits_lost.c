/* A sender has a credit for each receive of its peer, and takes a credit back when a send has
 * completed with success. Credits of sends that failed are lost for the next connection. */
#include "ends.h"

enum { kCredits = 1, kMessages = 1, kConnections = 3 };

int main(void) {
    int credits = kCredits;
    int sent = 0;
    int connections = 1;
    open_ends(kPatient);
    for (uint64_t i = 0; i < kMessages + kCredits; ++i) {
        post_receive(&far_end, i, 0, 64);
    }
    for (int polls = 1; sent < kMessages; ++polls) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        struct ibv_wc wc;
        if (credits > 0) {
            --credits;
            post_send(&near_end, &wr, 64);
        }
        if (polls % kEmptyPolls == 0) {
            check_end(&near_end);
            check_end(&far_end);
        }
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 0) {
            continue;
        }
        if (wc.status == IBV_WC_SUCCESS) {
            ++sent;
            ++credits;
            continue;
        }
        check(++connections <= kConnections, "a connection that works");
        reconnect();
#ifdef MENDED
        credits = kCredits;
#endif
        for (uint64_t i = 0; i < kMessages + kCredits; ++i) {
            post_receive(&far_end, i, 0, 64);
        }
    }
    close_ends();
    return 0;
}
