/* A program whose threads end and are joined while another one keeps virtual time moving. Each
 * thread writes through a queue pair that is connected to itself. It says nothing unless something
 * fails. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

enum { kThreads = 30, kWritesOfTheOther = 3000, kBytes = 4096 };

#define CHECK(condition)                                                \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
            exit(1);                                                    \
        }                                                               \
    } while (0)

struct end {
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_mr* mr;
    char memory[kBytes];
};

static struct ibv_context* context;
static struct ibv_pd* domain;
static atomic_bool in_library;

static void connect_to_itself(struct ibv_qp* qp, uint16_t lid) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    CHECK(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .path_mtu = IBV_MTU_1024,
                                .dest_qp_num = qp->qp_num,
                                .min_rnr_timer = 12,
                                .ah_attr = {.dlid = lid, .port_num = 1}};
    CHECK(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
    CHECK(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static struct end* make_end(uint16_t lid) {
    struct end* end = calloc(1, sizeof *end);
    CHECK(end != NULL);
    CHECK((end->cq = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL);
    CHECK((end->mr = ibv_reg_mr(domain, end->memory, kBytes,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)) != NULL);
    struct ibv_qp_init_attr attr = {
        .send_cq = end->cq,
        .recv_cq = end->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    CHECK((end->qp = ibv_create_qp(domain, &attr)) != NULL);
    connect_to_itself(end->qp, lid);
    return end;
}

static void post(struct end* end) {
    struct ibv_sge piece = {
        .addr = (uintptr_t)end->memory, .length = kBytes / 2, .lkey = end->mr->lkey};
    struct ibv_send_wr request = {.sg_list = &piece,
                                  .num_sge = 1,
                                  .opcode = IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED};
    request.wr.rdma.remote_addr = piece.addr + kBytes / 2;
    request.wr.rdma.rkey = end->mr->rkey;
    struct ibv_send_wr* bad;
    CHECK(ibv_post_send(end->qp, &request, &bad) == 0);
}

static void wait_for_completion(struct end* end) {
    struct ibv_wc completion;
    int found = 0;
    while ((found = ibv_poll_cq(end->cq, 1, &completion)) == 0) {
    }
    CHECK(found == 1 && completion.status == IBV_WC_SUCCESS);
}

/* Its first verb does not wait; time is held for it from there on. */
static void* write_often(void* end) {
    post(end);
    in_library = true;
    wait_for_completion(end);
    for (int i = 0; i < kWritesOfTheOther; ++i) {
        post(end);
        wait_for_completion(end);
    }
    return NULL;
}

static void* write_and_end(void* end) {
    post(end);
    in_library = true;
    wait_for_completion(end);
    return NULL;
}

/* Runs until the thread has called a verb: nothing else holds time for it before. */
static pthread_t start(void* (*function)(void*), struct end* end) {
    pthread_t thread;
    in_library = false;
    CHECK(pthread_create(&thread, NULL, function, end) == 0);
    while (!in_library) {
    }
    return thread;
}

int main(void) {
    struct ibv_device** devices = ibv_get_device_list(NULL);
    CHECK(devices != NULL && devices[0] != NULL);
    CHECK((context = ibv_open_device(devices[0])) != NULL);
    ibv_free_device_list(devices);
    CHECK((domain = ibv_alloc_pd(context)) != NULL);
    struct ibv_port_attr port;
    CHECK(ibv_query_port(context, 1, &port) == 0);
    struct end* own = make_end(port.lid);
    struct end* of_threads = make_end(port.lid);

    pthread_t busy = start(write_often, make_end(port.lid));
    for (int i = 0; i < kThreads; ++i) {
        CHECK(pthread_join(start(write_and_end, of_threads), NULL) == 0);
        post(own);
        wait_for_completion(own);
    }
    CHECK(pthread_join(busy, NULL) == 0);
    return 0;
}
