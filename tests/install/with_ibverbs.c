/* A C program of verbs.h and nothing else, as it would be linked anywhere: two queue pairs of one
   process, on the first two devices, exchange a message, an RDMA WRITE and an atomic. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

enum { kBytes = 8192, kPolls = 1000000 };

struct end {
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr;
    struct ibv_qp* qp;
    struct ibv_port_attr port;
    uint64_t memory[kBytes / 8];
};

static struct end a, b;

static void check(int held, const char* what) {
    if (!held) {
        fprintf(stderr, "failed: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

static void open_end(struct end* end, struct ibv_device* device) {
    end->context = ibv_open_device(device);
    check(end->context != NULL, "ibv_open_device");
    end->pd = ibv_alloc_pd(end->context);
    end->cq = ibv_create_cq(end->context, 16, NULL, NULL, 0);
    end->mr =
        ibv_reg_mr(end->pd, end->memory, kBytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .cap = {8, 8, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
    end->qp = ibv_create_qp(end->pd, &init);
    check(end->mr != NULL && end->qp != NULL, "ibv_create_qp");
    check(ibv_query_port(end->context, 1, &end->port) == 0, "ibv_query_port");
}

static void connect_to(struct end* end, const struct end* peer) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "to INIT");
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer->qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = peer->port.lid;
    attr.ah_attr.port_num = 1;
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to RTS");
}

static void wait_for(struct end* end, enum ibv_wc_opcode opcode) {
    struct ibv_wc wc;
    int found = 0;
    for (int i = 0; i < kPolls && found == 0; ++i) {
        found = ibv_poll_cq(end->cq, 1, &wc);
    }
    check(found == 1, "a completion");
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    check(wc.opcode == opcode, "its opcode");
}

static void post(struct end* end, struct ibv_send_wr* wr, uint32_t length) {
    struct ibv_sge sge = {(uintptr_t)end->memory, length, end->mr->lkey};
    struct ibv_send_wr* bad = NULL;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    check(ibv_post_send(end->qp, wr, &bad) == 0, "ibv_post_send");
}

static void exchange(void) {
    for (uint32_t i = 0; i < kBytes / 8; ++i) {
        a.memory[i] = i * UINT64_C(0x9E3779B97F4A7C15);
    }
    struct ibv_sge sge = {(uintptr_t)b.memory, kBytes, b.mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check(ibv_post_recv(b.qp, &receive, &bad) == 0, "ibv_post_recv");
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post(&a, &wr, kBytes);
    wait_for(&b, IBV_WC_RECV);
    wait_for(&a, IBV_WC_SEND);
    check(memcmp(a.memory, b.memory, kBytes) == 0, "what was sent arrived");

    a.memory[0] = 41;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)b.memory;
    wr.wr.rdma.rkey = b.mr->rkey;
    post(&a, &wr, 8);
    wait_for(&a, IBV_WC_RDMA_WRITE);

    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = (uintptr_t)b.memory;
    wr.wr.atomic.rkey = b.mr->rkey;
    wr.wr.atomic.compare_add = 1;
    post(&a, &wr, 8);
    wait_for(&a, IBV_WC_FETCH_ADD);
    check(a.memory[0] == 41 && b.memory[0] == 42, "41, and one more there");
}

static void close_end(struct end* end) {
    check(ibv_destroy_qp(end->qp) == 0 && ibv_destroy_cq(end->cq) == 0 &&
              ibv_dereg_mr(end->mr) == 0 && ibv_dealloc_pd(end->pd) == 0 &&
              ibv_close_device(end->context) == 0,
          "taking everything down");
}

int main(void) {
    int count = 0;
    struct ibv_device** devices = ibv_get_device_list(&count);
    check(devices != NULL && count >= 2, "two devices");
    open_end(&a, devices[0]);
    open_end(&b, devices[1]);
    ibv_free_device_list(devices);
    connect_to(&a, &b);
    connect_to(&b, &a);
    exchange();
    close_end(&a);
    close_end(&b);
    printf("SEND, RDMA WRITE and FETCH_ADD between two devices\n");
    return EXIT_SUCCESS;
}
