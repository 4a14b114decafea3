/* client ADDRESS PORT COUNT [STEP MICROSECONDS]: connects to the server, has COUNT messages sent
 * back, compares each, disconnects. Ends with 0 if all that went well. It is killed MICROSECONDS
 * after step STEP begins: 0 is the lookup of the address, 1 the connection, 2 the first message. */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kLength = 64 };

struct death {
    int step;
    long microseconds;
};

static void begin_step(const struct death* death, int step) {
    if (step != death->step) {
        return;
    }
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    const struct itimerspec when = {.it_value.tv_nsec = 1 + death->microseconds * 1000};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
        timer_settime(timer, 0, &when, NULL) != 0) {
        perror("timer");
        exit(1);
    }
}

static struct rdma_cm_id* connect_to(char* address, char* port) {
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
    struct rdma_addrinfo* found = NULL;
    if (rdma_getaddrinfo(address, port, &hints, &found) != 0) {
        perror("rdma_getaddrinfo");
        return NULL;
    }
    struct ibv_qp_init_attr attributes = {
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .sq_sig_all = 1,
    };
    struct rdma_cm_id* id = NULL;
    if (rdma_create_ep(&id, found, NULL, &attributes) != 0) {
        perror("rdma_create_ep");
        id = NULL;
    }
    rdma_freeaddrinfo(found);
    return id;
}

/* Waits for the one request of a queue that is under way. Returns whether it succeeded. */
static int wait_for(int (*take)(struct rdma_cm_id*, struct ibv_wc*), struct rdma_cm_id* id,
                    const char* what) {
    struct ibv_wc completion;
    if (take(id, &completion) != 1) {
        perror(what);
        return 0;
    }
    if (completion.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(completion.status));
    }
    return completion.status == IBV_WC_SUCCESS;
}

static int exchange(struct rdma_cm_id* id, int count, const struct death* death) {
    static char sent[kLength];
    static char received[kLength];
    struct ibv_mr* from = rdma_reg_msgs(id, sent, sizeof(sent));
    struct ibv_mr* to = rdma_reg_msgs(id, received, sizeof(received));
    begin_step(death, 1);
    int well = from != NULL && to != NULL && rdma_post_recv(id, NULL, received, kLength, to) == 0 &&
               rdma_connect(id, NULL) == 0;
    if (!well) {
        perror("connect");
    }
    for (int i = 0; well && i < count; ++i) {
        begin_step(death, 2 + i);
        memset(sent, 'a' + i % 26, sizeof(sent));
        well = rdma_post_send(id, NULL, sent, kLength, from, 0) == 0 &&
               wait_for(rdma_get_send_comp, id, "send") &&
               wait_for(rdma_get_recv_comp, id, "receive");
        if (well && memcmp(sent, received, kLength) != 0) {
            fprintf(stderr, "message %d came back changed\n", i);
            well = 0;
        }
        well = well && rdma_post_recv(id, NULL, received, kLength, to) == 0;
    }
    begin_step(death, 2 + count);
    if (well && rdma_disconnect(id) != 0) {
        perror("rdma_disconnect");
        well = 0;
    }
    rdma_destroy_qp(id);
    if (from != NULL) {
        rdma_dereg_mr(from);
    }
    if (to != NULL) {
        rdma_dereg_mr(to);
    }
    return well;
}

int main(int argc, char** argv) {
    if (argc != 4 && argc != 6) {
        fprintf(stderr, "usage: client ADDRESS PORT COUNT [STEP MICROSECONDS]\n");
        return 2;
    }
    struct death death = {.step = -1};
    if (argc == 6) {
        death = (struct death){.step = (int)strtol(argv[4], NULL, 10),
                               .microseconds = strtol(argv[5], NULL, 10)};
    }
    begin_step(&death, 0);
    struct rdma_cm_id* id = connect_to(argv[1], argv[2]);
    if (id == NULL) {
        return 1;
    }
    const int well = exchange(id, (int)strtol(argv[3], NULL, 10), &death);
    rdma_destroy_ep(id);
    return well ? 0 : 1;
}
