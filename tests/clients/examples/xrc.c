/* Extended reliable connections: the receiver's queue pair (the target) has no receives of its own;
   each request names the shared receive queue that it is for, by number. Two such queues stand here
   for two processes behind one connection. */
#include <fcntl.h>

#include "end.h"

enum { kMessage = 64 };

static struct end a, b;

static struct ibv_srq* create_xrc_srq(struct ibv_xrcd* domain, uint32_t offset, uint32_t* number) {
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                                                     IBV_SRQ_INIT_ATTR_PD,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = b.pd,
                                        .xrcd = domain,
                                        .cq = b.cq};
    struct ibv_srq* srq = ibv_create_srq_ex(b.context, &init);
    check(srq != NULL, "ibv_create_srq_ex");
    check(ibv_get_srq_num(srq, number) == 0, "ibv_get_srq_num");
    struct ibv_sge sge = range(&b, offset, kMessage);
    struct ibv_recv_wr wr = {.wr_id = *number, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check(ibv_post_srq_recv(srq, &wr, &bad) == 0, "ibv_post_srq_recv");
    return srq;
}

static void send_to(uint32_t number, uint32_t offset, const char* text) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    wr.qp_type.xrc.remote_srqn = number;
    snprintf((char*)a.memory, kMessage, "%s", text);
    post_send(&a, &wr, kMessage);
    wait_for(&a, IBV_WC_SUCCESS);
    check(wait_for(&b, IBV_WC_SUCCESS).wr_id == number, "the receive is of the queue named");
    check(strcmp((char*)b.memory + offset, text) == 0, "what was sent is there");
}

int main(void) {
    open_end(&a, 0);
    open_end(&b, 1);

    /* Without a file the domain is this process's own; with one, whoever opens the file shares it.
     */
    struct ibv_xrcd_init_attr of_domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT};
    struct ibv_xrcd* domain = ibv_open_xrcd(b.context, &of_domain);
    check(domain != NULL, "ibv_open_xrcd");
    uint32_t first = 0, second = 0;
    struct ibv_srq* srqs[2] = {create_xrc_srq(domain, 0, &first),
                               create_xrc_srq(domain, kMessage, &second)};

    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    b.qp = ibv_create_qp_ex(b.context, &target);
    check(b.qp != NULL, "the target");
    struct ibv_qp_init_attr_ex initiator = {.qp_type = IBV_QPT_XRC_SEND,
                                            .send_cq = a.cq,
                                            .cap = {.max_send_wr = 4, .max_send_sge = 1},
                                            .sq_sig_all = 1,
                                            .comp_mask = IBV_QP_INIT_ATTR_PD,
                                            .pd = a.pd};
    a.qp = ibv_create_qp_ex(a.context, &initiator);
    check(a.qp != NULL, "the initiator");
    connect_ends(&a, &b);

    send_to(second, kMessage, "for the second");
    send_to(first, 0, "for the first");

    check(ibv_destroy_qp(b.qp) == 0, "ibv_destroy_qp");
    b.qp = NULL;
    check(ibv_destroy_srq(srqs[0]) == 0 && ibv_destroy_srq(srqs[1]) == 0, "ibv_destroy_srq");
    check(ibv_close_xrcd(domain) == 0, "ibv_close_xrcd");
    close_end(&a);
    close_end(&b);
    puts("one connection, two shared receive queues");
    return EXIT_SUCCESS;
}
