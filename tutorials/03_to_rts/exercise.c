/* Lesson 3: bring a queue pair from RESET to RTS by hand, at both ends, and send a greeting. */
#include "lab.h"

/* The facts that one end has to know of the other. Two programs would send it over a socket. */
struct address {
    uint16_t lid;
    uint32_t qpn;
    uint32_t psn; /* of the first packet that this end sends */
};

static struct lab_host h0, h1;

static void to_init(struct lab_host* host) {
    /* YOUR TURN 1: to INIT. Needed: pkey_index (0), port_num (1) and qp_access_flags (0: peers
       may only send). For each attribute there is a bit in the mask: IBV_QP_STATE,
       IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS. */
    (void)host;
}

static void post_receive(struct lab_host* host) {
    struct ibv_sge sge = lab_sge(host, 0, 64);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(host->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void to_rtr(struct lab_host* host, struct address peer) {
    /* YOUR TURN 2: to RTR, ready to receive. Now the queue pair learns who its peer is:
       ah_attr.dlid and ah_attr.port_num (1), dest_qp_num, rq_psn (the PSN that the peer's first
       packet has), path_mtu (IBV_MTU_1024), max_dest_rd_atomic (1), min_rnr_timer (12). The
       bits: IBV_QP_AV for ah_attr, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN, IBV_QP_PATH_MTU,
       IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, and always IBV_QP_STATE. */
    (void)host;
    (void)peer;
}

static void to_rts(struct lab_host* host, struct address own) {
    /* YOUR TURN 3: to RTS, ready to send: sq_psn (the PSN of the own first packet), timeout
       (14), retry_cnt (7), rnr_retry (7), max_rd_atomic (1). The bits: IBV_QP_SQ_PSN,
       IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_MAX_QP_RD_ATOMIC, and
       IBV_QP_STATE. */
    (void)host;
    (void)own;
}

static void greet(struct lab_host* from, struct lab_host* to, const char* words) {
    strcpy(from->memory + 64, words);
    struct ibv_sge sge = lab_sge(from, 64, 64);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(from->qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(from->cq);
    lab_wait_success(to->cq);
    printf("it says: %s\n", to->memory);
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_create_qp(&h0, NULL);
    lab_create_qp(&h1, NULL);
    const struct address of_h0 = {h0.port.lid, h0.qp->qp_num, 1000};
    const struct address of_h1 = {h1.port.lid, h1.qp->qp_num, 2000};

    /* YOUR TURN 4: call the functions above for both ends, in the right order: to_init(),
       post_receive(), to_rtr(), to_rts(). Whose address does each get? */
    to_init(&h0);
    to_rtr(&h0, of_h1);
    to_rts(&h0, of_h0);
    (void)post_receive;

    greet(&h0, &h1, "hello from h0");
    greet(&h1, &h0, "hello from h1");
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
