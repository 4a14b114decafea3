/* A client sends a datagram again when no reply comes. If the reply was lost, and not the request,
 * the server executes the request a second time. */
#include "ends.h"

enum { kAttempts = 3, kPatience = 1000, kRequestAt = 0, kReplyAt = 256, kGrh = 40 };

static uint8_t executed; /* requests that the server has executed */
#ifdef MENDED
static uint8_t last_number;
#endif

static void serve(struct ibv_ah* to_client) {
    struct ibv_wc wc;
    while (ibv_poll_cq(far_end.cq, 1, &wc) == 1) {
        if (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV) {
            struct ibv_send_wr reply = datagram_to(&near_end, to_client);
#ifdef MENDED
            const uint8_t number = far_end.memory[kRequestAt + kGrh];
            executed += number != last_number;
            last_number = number;
#else
            ++executed;
#endif
            post_receive(&far_end, 0, kRequestAt, 64 + kGrh);
            post_send(&far_end, &reply, 8);
        }
    }
}

int main(void) {
    open_ends_of(IBV_QPT_UD, kPatient);
    struct ibv_ah* const to_server = address_of(&far_end, &near_end);
    struct ibv_ah* const to_client = address_of(&near_end, &far_end);
    struct ibv_wc wc = {0};
    int has_reply = 0;
    near_end.memory[0] = 1; /* the number of the request */
    post_receive(&far_end, 0, kRequestAt, 64 + kGrh);
    post_receive(&near_end, 0, kReplyAt, 64 + kGrh);
    for (int i = 0; i < kAttempts && !has_reply; ++i) {
        struct ibv_send_wr request = datagram_to(&far_end, to_server);
        post_send(&near_end, &request, 8);
        for (int polls = 0; polls < kPatience && !has_reply; ++polls) {
            serve(to_client);
            if (ibv_poll_cq(near_end.cq, 1, &wc) == 1) {
                check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
                has_reply = wc.opcode == IBV_WC_RECV;
            }
        }
    }
    check(has_reply, "a reply");
    assert(executed == 1);
    check(ibv_destroy_ah(to_server) == 0 && ibv_destroy_ah(to_client) == 0, "ibv_destroy_ah");
    close_ends();
    return 0;
}
