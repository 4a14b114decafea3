/* Calls newer than Debian 12's verbs.h, as a program of rdma-core 65 makes them: messages in
   buffers that the library allocates for a parent domain, and their completions counted instead of
   polled. No completion queue is ever looked at. */
#include <errno.h>

#include "end.h"
#include "newer_verbs.h"

enum { kMessages = 8, kMessageBytes = 512 };

struct side {
    struct end end;
    struct ibv_pd* parent;
    struct newer_buf* buffer;
    uint8_t* memory;
    struct ibv_mr* mr;
    struct newer_comp_cntr* sends;
    struct newer_comp_cntr* receives;
};

static struct side a, b;

static struct newer_comp_cntr* count(struct side* side, uint32_t operation) {
    struct newer_comp_cntr_init_attr init = {.type = NEWER_COMP_CNTR_TYPE_WRS};
    struct newer_comp_cntr* counter = newer_create_comp_cntr(side->end.context, &init);
    check(counter != NULL, "ibv_create_comp_cntr");
    struct newer_qp_attach_comp_cntr_attr attach = {.op_mask = operation};
    check(newer_qp_attach_comp_cntr(side->end.qp, counter, &attach) == 0,
          "ibv_qp_attach_comp_cntr");
    return counter;
}

static void open_side(struct side* side, int position) {
    open_end(&side->end, position);
    struct ibv_parent_domain_init_attr domain = {
        .pd = side->end.pd, .comp_mask = NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC};
    side->parent = ibv_alloc_parent_domain(side->end.context, &domain);
    check(side->parent != NULL, "ibv_alloc_parent_domain");
    side->memory = newer_alloc_buf(side->parent, kMessages * kMessageBytes, &side->buffer);
    check(side->memory != NULL, "ibv_alloc_buf");
    struct newer_mr_init_attr attr = {
        .comp_mask = NEWER_REG_MR_MASK_BUF | NEWER_REG_MR_MASK_ADDR,
        .length = kMessages * kMessageBytes,
        .access = IBV_ACCESS_LOCAL_WRITE,
        .addr = side->memory,
        .buf = side->buffer,
    };
    side->mr = newer_reg_mr_ex(side->parent, &attr);
    check(side->mr != NULL, "ibv_reg_mr_ex");
    check(newer_export_buf_dmabuf_fd(side->buffer) == -1 && errno == ENODATA,
          "the buffer is no DMA-buf");

    struct newer_comp_cntr_caps caps;
    check(newer_query_comp_cntr_caps(side->end.context, &caps, sizeof caps) == 0 &&
              caps.max_counters >= 2 &&
              (caps.supported_qp_attach_ops & NEWER_COMP_CNTR_OP_SEND) != 0,
          "the device counts completions");
    struct ibv_qp_init_attr init = {
        .send_cq = side->end.cq,
        .recv_cq = side->end.cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    side->end.qp = ibv_create_qp(side->end.pd, &init);
    check(side->end.qp != NULL, "ibv_create_qp");
    side->sends = count(side, NEWER_COMP_CNTR_OP_SEND);
    side->receives = count(side, NEWER_COMP_CNTR_OP_RECV);
}

static struct ibv_sge message(const struct side* side, int index) {
    return (struct ibv_sge){(uintptr_t)side->memory + (unsigned)index * kMessageBytes,
                            kMessageBytes, side->mr->lkey};
}

static void wait_until(struct newer_comp_cntr* counter, uint64_t value) {
    uint64_t now = 0;
    for (int i = 0; i < kPolls && now != value; ++i) {
        check(newer_read_comp_cntr(counter, &now) == 0, "ibv_read_comp_cntr");
    }
    check(now == value, "the counter says how many have completed");
    check(newer_read_err_comp_cntr(counter, &now) == 0 && now == 0, "none has failed");
}

static void close_side(struct side* side) {
    check(newer_destroy_comp_cntr(side->sends) == EBUSY, "a counter is held by its queue pair");
    check(ibv_destroy_qp(side->end.qp) == 0, "ibv_destroy_qp");
    side->end.qp = NULL;
    check(newer_destroy_comp_cntr(side->sends) == 0, "ibv_destroy_comp_cntr");
    check(newer_destroy_comp_cntr(side->receives) == 0, "ibv_destroy_comp_cntr");
    check(ibv_dereg_mr(side->mr) == 0, "ibv_dereg_mr");
    newer_free_buf(side->buffer);
    check(ibv_dealloc_pd(side->parent) == 0, "ibv_dealloc_pd");
    close_end(&side->end);
}

int main(void) {
    open_side(&a, 0);
    open_side(&b, 1);
    connect_ends(&a.end, &b.end);

    for (int i = 0; i < kMessages; ++i) {
        struct ibv_sge sge = message(&b, i);
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        check(ibv_post_recv(b.end.qp, &wr, &bad) == 0, "ibv_post_recv");
    }
    for (int i = 0; i < kMessages; ++i) {
        memset(a.memory + i * kMessageBytes, 'A' + i, kMessageBytes);
        struct ibv_sge sge = message(&a, i);
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
        struct ibv_send_wr* bad = NULL;
        check(ibv_post_send(a.end.qp, &wr, &bad) == 0, "ibv_post_send");
    }
    wait_until(b.receives, kMessages);
    wait_until(a.sends, kMessages);
    check(memcmp(a.memory, b.memory, kMessages * kMessageBytes) == 0, "all arrived as they were");

    uint64_t speed = 0;
    check(newer_query_port_speed(a.end.context, 1, &speed) == 0 && speed > 0,
          "ibv_query_port_speed");
    close_side(&a);
    close_side(&b);
    printf("%d messages counted, at %u Gb/s\n", kMessages, (unsigned)(speed / 10));
    return EXIT_SUCCESS;
}
