/* A client waits for the reply to a datagram without a time limit, and never asks again. */
#include "ends.h"

enum { kAttempts = 3, kPatience = 1000, kReplyAt = 64, kGrh = 40 };

/* The server answers what has come. */
static void serve(struct ibv_ah* to_client) {
    struct ibv_wc wc;
    while (ibv_poll_cq(far_end.cq, 1, &wc) == 1) {
        if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
            struct ibv_send_wr reply = datagram_to(&near_end, to_client);
            post_receive(&far_end, 0, 0, 64 + kGrh);
            post_send(&far_end, &reply, 8);
        }
    }
}

int main(void) {
    open_ends_of(IBV_QPT_UD, kPatient);
    struct ibv_ah* const to_server = address_of(&far_end, &near_end);
    struct ibv_ah* const to_client = address_of(&near_end, &far_end);
    struct ibv_send_wr request = datagram_to(&far_end, to_server);
    struct ibv_wc wc = {0};
    int has_reply = 0;
    int attempts = 1;
    post_receive(&far_end, 0, 0, 64 + kGrh);
    post_receive(&near_end, 0, kReplyAt, 64 + kGrh);
    post_send(&near_end, &request, 8);
    for (int polls = 1; !has_reply; ++polls) {
        serve(to_client);
        if (ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            has_reply = wc.opcode == IBV_WC_RECV;
        }
        if (polls % kPatience == 0) {
#ifdef MENDED
            check(++attempts <= kAttempts, "a reply");
            post_send(&near_end, &request, 8);
#endif
            check_end(&near_end);
            check_end(&far_end);
        }
    }
    check(ibv_destroy_ah(to_server) == 0 && ibv_destroy_ah(to_client) == 0, "ibv_destroy_ah");
    close_ends();
    printf("%d attempts\n", attempts);
    return 0;
}
