/* A client sends its next request when it has the reply to the last one. The send queue has room
 * only when the completion of the last request was polled, too. */
#include "ends.h"

enum { kRequests = 3, kReplyAt = 64 };

#ifdef MENDED
enum { kAwaitsSend = 1 };
#else
enum { kAwaitsSend = 0 };
#endif

static void create_small_queue(void) {
    struct ibv_qp_init_attr init = {
        .send_cq = near_end.cq,
        .recv_cq = near_end.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    near_end.qp = ibv_create_qp(near_end.pd, &init);
    check(near_end.qp != NULL, "ibv_create_qp");
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    create_small_queue();
    create_qp(&far_end, IBV_QPT_RC, NULL);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    for (int i = 0; i < kRequests; ++i) {
        post_receive(&far_end, 0, 0, 64);
        post_receive(&near_end, 0, kReplyAt, 64);
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        post_send(&near_end, &wr, 64);
        while (next_success(&far_end).opcode != IBV_WC_RECV) {
        }
        post_send(&far_end, &wr, 64);
        int sent = 0;
        int replied = 0;
        while (!replied || (kAwaitsSend && !sent)) {
            const int is_reply = next_success(&near_end).opcode == IBV_WC_RECV;
            replied += is_reply;
            sent += !is_reply;
        }
    }
    close_ends();
    return 0;
}
