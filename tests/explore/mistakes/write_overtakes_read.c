/* A value is read, and then replaced by a WRITE without a fence. If the response of the READ is
 * lost, the READ is executed again, behind the WRITE. */
#include "ends.h"

enum { kNewAt = 0, kOldAt = 64, kValueAt = 128, kOld = 7, kNew = 8 };

int main(void) {
    open_ends(kPatient);
    far_end.memory[kValueAt] = kOld;
    near_end.memory[kNewAt] = kNew;

    struct ibv_send_wr read = request_to(IBV_WR_RDMA_READ, &far_end, kValueAt);
    struct ibv_send_wr write = request_to(IBV_WR_RDMA_WRITE, &far_end, kValueAt);
#ifdef MENDED
    write.send_flags = IBV_SEND_FENCE;
#endif
    post_on(near_end.qp, &near_end, &read, kOldAt, 1);
    post_on(near_end.qp, &near_end, &write, kNewAt, 1);
    next_success(&near_end);
    next_success(&near_end);
    assert(near_end.memory[kOldAt] == kOld);
    assert(far_end.memory[kValueAt] == kNew);
    close_ends();
    return 0;
}
