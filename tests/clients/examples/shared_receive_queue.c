/* Two queue pairs take their receives from one shared queue, which says when it runs low. */
#include "end.h"

enum { kReceives = 8, kLimit = 4, kMessages = 5, kMessageBytes = 64 };

static struct end a, b;        /* the first connection */
static struct ibv_qp *a2, *b2; /* the second, between the same two */

static struct ibv_srq* create_srq(struct end* end) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = kReceives, .max_sge = 1}};
    struct ibv_srq* srq = ibv_create_srq(end->pd, &init);
    check(srq != NULL, "ibv_create_srq");
    for (uint32_t i = 0; i < kReceives; ++i) {
        struct ibv_sge sge = range(end, i * kMessageBytes, kMessageBytes);
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        check(ibv_post_srq_recv(srq, &wr, &bad) == 0, "ibv_post_srq_recv");
    }
    struct ibv_srq_attr low = {.srq_limit = kLimit};
    check(ibv_modify_srq(srq, &low, IBV_SRQ_LIMIT) == 0, "ibv_modify_srq");
    return srq;
}

int main(void) {
    open_end(&a, 0);
    open_end(&b, 1);
    struct ibv_srq* srq = create_srq(&b);
    create_qp(&a, IBV_QPT_RC, NULL);
    create_qp(&b, IBV_QPT_RC, srq);
    connect_ends(&a, &b);
    struct ibv_qp *first_a = a.qp, *first_b = b.qp;
    create_qp(&a, IBV_QPT_RC, NULL);
    create_qp(&b, IBV_QPT_RC, srq);
    connect_ends(&a, &b);
    a2 = a.qp;
    b2 = b.qp;

    for (uint32_t i = 0; i < kMessages; ++i) {
        const int second = i % 2 == 1;
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        a.qp = second ? a2 : first_a;
        memset(a.memory, 'a' + (int)i, kMessageBytes);
        post_send(&a, &wr, kMessageBytes);
        wait_for(&a, IBV_WC_SUCCESS);
        const struct ibv_wc wc = wait_for(&b, IBV_WC_SUCCESS);
        check(wc.wr_id == i, "receives are taken in the order in which they were posted");
        check(wc.qp_num == (second ? b2 : first_b)->qp_num, "the completion says for whom");
        check(b.memory[i * kMessageBytes] == 'a' + i, "the message is in it");
    }

    struct ibv_async_event event;
    check(ibv_get_async_event(b.context, &event) == 0, "ibv_get_async_event");
    check(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq, "it is low");
    ibv_ack_async_event(&event);
    struct ibv_srq_attr now;
    check(ibv_query_srq(srq, &now) == 0 && now.srq_limit == 0, "the limit has to be set again");

    check(ibv_destroy_qp(first_a) == 0 && ibv_destroy_qp(first_b) == 0, "ibv_destroy_qp");
    check(ibv_destroy_qp(a2) == 0 && ibv_destroy_qp(b2) == 0, "ibv_destroy_qp");
    a.qp = b.qp = NULL;
    check(ibv_destroy_srq(srq) == 0, "ibv_destroy_srq");
    close_end(&a);
    close_end(&b);
    puts("two queue pairs, one queue of receives, and the event when it is low");
    return EXIT_SUCCESS;
}
