/* A server takes every failed completion for a defect of its own, so one client that fails takes
 * the other one with it. */
#include "ends.h"

enum { kClients = 2, kSlot = 64 };

static struct ibv_qp *near_qps[kClients], *far_qps[kClients];
static int served, failed;

static void take(struct ibv_wc wc) {
#ifdef MENDED
    if (wc.status != IBV_WC_SUCCESS) {
        ++failed;
        return;
    }
#else
    assert(wc.status == IBV_WC_SUCCESS);
#endif
    ++served;
}

int main(void) {
    open_ends(kPatient);
    near_qps[0] = near_end.qp;
    far_qps[0] = far_end.qp;
    near_qps[1] = another_qp(&near_end, NULL);
    far_qps[1] = another_qp(&far_end, NULL);
    connect_pair(near_qps[1], far_qps[1], kPatient);
    for (uint32_t i = 0; i < kClients; ++i) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        receive_on(far_qps[i], &far_end, i, i * kSlot, kSlot);
        post_on(near_qps[i], &near_end, &wr, i * kSlot, kSlot);
    }
    while (served + failed < kClients) {
        take(next_of(&far_end));
    }
    check(failed < kClients, "a client that works");
    next_of(&near_end);
    next_of(&near_end);
    check(ibv_destroy_qp(near_qps[1]) == 0 && ibv_destroy_qp(far_qps[1]) == 0, "ibv_destroy_qp");
    close_ends();
    return 0;
}
