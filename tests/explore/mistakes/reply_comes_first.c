/* A client takes its first completion for that of its request. The reply can come earlier than the
 * acknowledgement of the request. */
#include "ends.h"

enum { kRequest = 1, kReply = 2, kReplyAt = 64 };

int main(void) {
    open_ends(kPatient);
    post_receive(&far_end, 0, 0, 64);
    post_receive(&near_end, kReply, kReplyAt, 64);
    struct ibv_send_wr request = {.wr_id = kRequest, .opcode = IBV_WR_SEND};
    post_send(&near_end, &request, 64);

    next_success(&far_end); /* the server: a request, then a reply */
    struct ibv_send_wr reply = {.opcode = IBV_WR_SEND};
    post_send(&far_end, &reply, 64);

#ifdef MENDED
    const struct ibv_wc one = next_success(&near_end);
    const struct ibv_wc other = next_success(&near_end);
    const struct ibv_wc answer = one.wr_id == kReply ? one : other;
#else
    next_success(&near_end); /* the request has been sent */
    const struct ibv_wc answer = next_success(&near_end);
#endif
    assert(answer.opcode == IBV_WC_RECV && answer.byte_len == 64);
    next_success(&far_end);
    close_ends();
    return 0;
}
