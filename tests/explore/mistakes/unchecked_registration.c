/* The result of ibv_reg_mr() is used before it is looked at. */
#include "ends.h"

int main(void) {
    static char more[4096];
    open_ends(kPatient);
    struct ibv_mr* mr = ibv_reg_mr(near_end.pd, more, sizeof more, IBV_ACCESS_LOCAL_WRITE);
#ifdef MENDED
    check(mr != NULL, "ibv_reg_mr");
#endif
    struct ibv_sge sge = {(uintptr_t)more, 5, mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr* bad = NULL;
    post_receive(&far_end, 0, 0, 64);
    check(ibv_post_send(near_end.qp, &wr, &bad) == 0, "ibv_post_send");
    next_success(&near_end);
    next_success(&far_end);
    check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    close_ends();
    return 0;
}
