/* Two buffers are sent by two queue pairs. The first completion is taken for that of the first
 * buffer, which is filled anew, although it can be the second one's. */
#include "ends.h"

enum { kSlot = 64 };

static struct ibv_qp *near_qps[2], *far_qps[2];

static void send_slot(int slot, const char* text) {
    struct ibv_send_wr wr = {.wr_id = (uint64_t)slot, .opcode = IBV_WR_SEND};
    strcpy((char*)near_end.memory + slot * kSlot, text);
    post_on(near_qps[slot], &near_end, &wr, (uint32_t)slot * kSlot, kSlot);
}

int main(void) {
    open_ends(kPatient);
    near_qps[0] = near_end.qp;
    far_qps[0] = far_end.qp;
    near_qps[1] = another_qp(&near_end, NULL);
    far_qps[1] = another_qp(&far_end, NULL);
    connect_pair(near_qps[1], far_qps[1], kPatient);
    for (uint32_t i = 0; i < 4; ++i) { /* a queue pair has receives 0 and 1 or 2 and 3 */
        receive_on(far_qps[i / 2], &far_end, i, i * kSlot, kSlot);
    }

    send_slot(0, "one");
    send_slot(1, "two");
    const struct ibv_wc first = next_success(&near_end);
#ifdef MENDED
    const int free_slot = (int)first.wr_id;
#else
    (void)first;
    const int free_slot = 0;
#endif
    send_slot(free_slot, "three");
    next_success(&near_end);
    next_success(&near_end);
    assert(strcmp((char*)far_end.memory, "one") == 0);
    assert(strcmp((char*)far_end.memory + 2 * kSlot, "two") == 0);
    check(ibv_destroy_qp(near_qps[1]) == 0 && ibv_destroy_qp(far_qps[1]) == 0, "ibv_destroy_qp");
    close_ends();
    return 0;
}
