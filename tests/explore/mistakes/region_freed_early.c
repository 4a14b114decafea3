/* The region of a request is deregistered when the reply is there. If the acknowledgement of the
 * request is lost, the request is sent again, from a region that is gone. */
#include "ends.h"

enum { kReply = 2, kReplyAt = 64 };

static void exchange(void) {
    static char message[64];
    int sent = 0;
    int replied = 0;
    struct ibv_mr* mr = ibv_reg_mr(near_end.pd, message, sizeof message, 0);
    check(mr != NULL, "ibv_reg_mr");
    post_receive(&far_end, 0, 0, 64);
    post_receive(&near_end, kReply, kReplyAt, 64);
    struct ibv_sge sge = {(uintptr_t)message, sizeof message, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr* bad = NULL;
    check(ibv_post_send(near_end.qp, &wr, &bad) == 0, "ibv_post_send");

    next_success(&far_end);
    post_send(&far_end, &wr, 64);
#ifdef MENDED
    while (!replied || !sent) {
#else
    while (!replied) {
#endif
        const int is_reply = next_success(&near_end).wr_id == kReply;
        replied += is_reply;
        sent += !is_reply;
    }
    check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    if (!sent) {
        next_success(&near_end);
    }
    next_success(&far_end);
}

int main(void) {
    open_ends(kPatient);
    exchange();
    exchange();
    close_ends();
    return 0;
}
