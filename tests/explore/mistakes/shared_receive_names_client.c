/* Two clients share the receives of a server, which takes the number of a receive for the number of
 * its client. Messages of two clients can come in any order. */
#include "ends.h"

enum { kClients = 2, kSlot = 64 };

static struct ibv_qp *near_qps[kClients], *far_qps[kClients];
static struct ibv_srq* srq;

static void open_server(void) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = kClients, .max_sge = 1}};
    srq = ibv_create_srq(far_end.pd, &attr);
    check(srq != NULL, "ibv_create_srq");
    for (uint32_t i = 0; i < kClients; ++i) {
        struct ibv_sge sge = range(&far_end, i * kSlot, kSlot);
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        check(ibv_post_srq_recv(srq, &wr, &bad) == 0, "ibv_post_srq_recv");
    }
}

int main(void) {
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    open_server();
    for (int i = 0; i < kClients; ++i) {
        near_qps[i] = another_qp(&near_end, NULL);
        far_qps[i] = another_qp(&far_end, srq);
        connect_pair(near_qps[i], far_qps[i], kPatient);
    }
    for (uint32_t i = 0; i < kClients; ++i) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        near_end.memory[i * kSlot] = (uint8_t)i;
        post_on(near_qps[i], &near_end, &wr, i * kSlot, 1);
    }
    for (int i = 0; i < kClients; ++i) {
        const struct ibv_wc wc = next_success(&far_end);
#ifdef MENDED
        const int client = wc.qp_num == far_qps[0]->qp_num ? 0 : 1;
#else
        const int client = (int)wc.wr_id;
#endif
        assert(far_end.memory[wc.wr_id * kSlot] == client);
    }
    next_success(&near_end);
    next_success(&near_end);
    for (int i = 0; i < kClients; ++i) {
        check(ibv_destroy_qp(near_qps[i]) == 0 && ibv_destroy_qp(far_qps[i]) == 0, "destroy");
    }
    check(ibv_destroy_srq(srq) == 0, "ibv_destroy_srq");
    close_ends();
    return 0;
}
