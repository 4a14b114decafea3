/* A server that gets no shared receive queue uses the receives of its queue pair instead. One place
 * has been forgotten, and nobody has ever run it. */
#include "ends.h"

enum { kMessages = 2 };

static struct ibv_srq* srq;

static void post_one(uint64_t id) {
    struct ibv_sge sge = range(&far_end, 0, 64);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check((srq != NULL ? ibv_post_srq_recv(srq, &wr, &bad)
                       : ibv_post_recv(far_end.qp, &wr, &bad)) == 0,
          "a receive");
}

int main(void) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
    open_end(&near_end, 0);
    open_end(&far_end, 1);
    srq = ibv_create_srq(far_end.pd, &attr);
    create_qp(&near_end, IBV_QPT_RC, NULL);
    create_qp(&far_end, IBV_QPT_RC, srq);
    connect_pair(near_end.qp, far_end.qp, kPatient);
    for (uint64_t i = 0; i < kMessages; ++i) {
        post_one(i);
        send_text("hello");
        next_success(&near_end);
        next_success(&far_end);
    }
#ifdef MENDED
    if (srq != NULL) {
        check(ibv_query_srq(srq, &attr.attr) == 0, "ibv_query_srq");
    }
#else
    check(ibv_query_srq(srq, &attr.attr) == 0, "ibv_query_srq");
#endif
    printf("room for %u receives\n", attr.attr.max_wr);
    check(ibv_destroy_qp(far_end.qp) == 0, "ibv_destroy_qp");
    check(srq == NULL || ibv_destroy_srq(srq) == 0, "ibv_destroy_srq");
    far_end.qp = NULL;
    close_ends();
    return 0;
}
