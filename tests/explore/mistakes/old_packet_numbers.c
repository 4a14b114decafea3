/* One end connects anew after a failure, with the packet number of its first connection. The peer
 * goes on with its queue pair, and takes new requests for duplicates: it acknowledges and drops
 * them. */
#include "ends.h"

enum { kAttempts = 3, kValues = 2, kNoteAt = 64 };

static void connect_again(void) {
    static int attempts = 1;
    check(++attempts <= kAttempts, "a connection that works");
#ifdef MENDED
    reconnect();
#else
    to_state(near_end.qp, IBV_QPS_RESET);
    bring_up(near_end.qp, &near_end, &far_end, far_end.qp->qp_num, kPatient);
#endif
    post_receive(&near_end, 0, kNoteAt, 64);
}

static void write_value(uint8_t value) {
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    near_end.memory[0] = value;
    for (post_send(&near_end, &wr, 1); next_of(&near_end).status != IBV_WC_SUCCESS;) {
        connect_again();
        post_send(&near_end, &wr, 1);
    }
}

int main(void) {
    open_ends(kPatient);
    post_receive(&near_end, 0, kNoteAt, 64);
    for (int value = 1; value <= kValues; ++value) {
        write_value((uint8_t)value);
        assert(far_end.memory[0] == value); /* what was written with success is there */
        struct ibv_send_wr note = {.opcode = IBV_WR_SEND};
        post_send(&far_end, &note, 8);
        if (next_of(&near_end).status == IBV_WC_SUCCESS) {
            post_receive(&near_end, 0, kNoteAt, 64);
        } else {
            connect_again();
        }
    }
    return 0;
}
