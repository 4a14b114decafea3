/* A client reads a record and tells the server at once that it has done so. The server deregisters
 * the record. If the response of the READ is lost, the READ is executed again and finds no region.
 */
#include "ends.h"

int main(void) {
    static char record[256] = "record";
    open_ends(kPatient);
    struct ibv_mr* mr = ibv_reg_mr(far_end.pd, record, sizeof record, IBV_ACCESS_REMOTE_READ);
    check(mr != NULL, "ibv_reg_mr");
    post_receive(&far_end, 0, 0, 64);

    struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ};
    struct ibv_send_wr done = {.opcode = IBV_WR_SEND};
    read.wr.rdma.remote_addr = (uintptr_t)record;
    read.wr.rdma.rkey = mr->rkey;
#ifdef MENDED
    done.send_flags = IBV_SEND_FENCE;
#endif
    post_send(&near_end, &read, sizeof record);
    post_send(&near_end, &done, 0);
    next_success(&far_end);
    check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");

    next_success(&near_end);
    next_success(&near_end);
    assert(strcmp((char*)near_end.memory, "record") == 0);
    close_ends();
    return 0;
}
