/* Data goes by one queue pair, and the message that announces it by another one, before the WRITE
 * has completed. Nothing orders the two. */
#include "ends.h"

int main(void) {
    open_ends(kPatient);
    struct ibv_qp* const near_flag = another_qp(&near_end, NULL);
    struct ibv_qp* const far_flag = another_qp(&far_end, NULL);
    connect_pair(near_flag, far_flag, kPatient);
    receive_on(far_flag, &far_end, 0, 64, 64);

    struct ibv_send_wr write = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    struct ibv_send_wr announce = {.opcode = IBV_WR_SEND};
    strcpy((char*)near_end.memory, "data");
    post_on(near_end.qp, &near_end, &write, 0, 5);
#ifdef MENDED
    next_success(&near_end);
#endif
    post_on(near_flag, &near_end, &announce, 0, 1);
    next_success(&far_end);
    assert(strcmp((char*)far_end.memory, "data") == 0);

    next_success(&near_end);
#ifndef MENDED
    next_success(&near_end);
#endif
    check(ibv_destroy_qp(near_flag) == 0 && ibv_destroy_qp(far_flag) == 0, "ibv_destroy_qp");
    close_ends();
    return 0;
}
