/* early_sender PORT server|client DELAY sleep|compute poll|event: connects as Gloo does. Both ends
 * exchange their queue pairs over TCP, and each sends as soon as its own is in RTS. The client's
 * stays in INIT for DELAY microseconds more, so that packets of the server find no queue pair that
 * takes them, and are repeated. Both must have both completions in the end. */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum { kLength = 64, kReceives = 8, kCompletions = 2 };

struct end {
    uint32_t qpn, psn;
    uint16_t lid;
    union ibv_gid gid;
};

static struct ibv_context* context;
static struct ibv_comp_channel* channel;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* mr;
static char memory[kLength * (kReceives + 1)];

static void check(bool holds, const char* what) {
    if (!holds) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static void open_device(void) {
    struct ibv_device** list = ibv_get_device_list(NULL);
    check(list != NULL && list[0] != NULL, "a device");
    context = ibv_open_device(list[0]);
    check(context != NULL, "ibv_open_device");
    ibv_free_device_list(list);
    struct ibv_pd* pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 2 * kReceives, NULL, channel, 0);
    mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    check(cq != NULL && mr != NULL, "a completion queue and a region");
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    qp = ibv_create_qp(pd, &init);
    check(qp != NULL, "ibv_create_qp");
}

/* Receives are posted before anybody can send. */
static void to_init(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "INIT");
    for (int i = 1; i <= kReceives; ++i) {
        struct ibv_sge sge = {(uintptr_t)memory + (uintptr_t)(i * kLength), kLength, mr->lkey};
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad = NULL;
        check(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
    }
}

static int connect_over_tcp(const char* port, bool serves) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtol(port, NULL, 10)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    if (serves) {
        const int yes = 1;
        setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        check(bind(tcp, (struct sockaddr*)&address, sizeof address) == 0 && listen(tcp, 1) == 0,
              "a port that is free");
        return accept(tcp, NULL, NULL);
    }
    while (connect(tcp, (struct sockaddr*)&address, sizeof address) != 0) {
        close(tcp);
        usleep(1000);
        tcp = socket(AF_INET, SOCK_STREAM, 0);
    }
    return tcp;
}

static void be_late(long microseconds, bool sleeps) {
    if (sleeps) {
        usleep((useconds_t)microseconds);
        return;
    }
    struct timespec begin;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 <
             microseconds);
}

static void to_rts(const struct end* own, const struct end* peer) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = peer->qpn,
                               .rq_psn = peer->psn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = {.dlid = peer->lid,
                                           .port_num = 1,
                                           .is_global = 1,
                                           .grh = {.dgid = peer->gid, .hop_limit = 1}}};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "RTR");
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = own->psn,
                                .timeout = 14,
                                .retry_cnt = 7,
                                .rnr_retry = 7,
                                .max_rd_atomic = 1};
    check(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "RTS");
}

static void await_completions(bool by_events) {
    struct ibv_wc wc;
    bool is_armed = false;
    for (int found = 0; found < kCompletions;) {
        if (ibv_poll_cq(cq, 1, &wc) == 1) {
            check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
            ++found;
        } else if (by_events && is_armed) {
            struct ibv_cq* of = NULL;
            void* argument = NULL;
            check(ibv_get_cq_event(channel, &of, &argument) == 0, "ibv_get_cq_event");
            ibv_ack_cq_events(of, 1);
            is_armed = false;
        } else if (by_events) {
            check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
            is_armed = true;
        }
    }
}

int main(int argc, char** argv) {
    check(argc == 6, "PORT server|client DELAY sleep|compute poll|event");
    const bool serves = strcmp(argv[2], "server") == 0;
    open_device();
    to_init();
    struct ibv_port_attr port;
    struct end own = {.qpn = qp->qp_num, .psn = serves ? 100 : 200};
    struct end peer;
    check(ibv_query_port(context, 1, &port) == 0 && ibv_query_gid(context, 1, 0, &own.gid) == 0,
          "the port");
    own.lid = port.lid;
    const int tcp = connect_over_tcp(argv[1], serves);
    check(
        write(tcp, &own, sizeof own) == sizeof own && read(tcp, &peer, sizeof peer) == sizeof peer,
        "the other end's queue pair");
    if (!serves) {
        be_late(strtol(argv[3], NULL, 10), strcmp(argv[4], "sleep") == 0);
    }
    to_rts(&own, &peer);
    struct ibv_sge sge = {(uintptr_t)memory, kLength, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    check(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
    await_completions(strcmp(argv[5], "event") == 0);
    char done = 0; /* none leaves while the other one may need an acknowledgement again */
    check(write(tcp, &done, 1) == 1 && read(tcp, &done, 1) == 1, "the other end");
    return 0;
}
