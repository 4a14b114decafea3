/* Lesson 9: one pool of receives for many peers. Three clients send to a server whose queue pairs
 * share a receive queue; the server refills it when it runs low. */
#include <poll.h>

#include <simverbs/simverbs.h>

#include "lab.h"

enum { CLIENTS = 3, MESSAGES = 18, SLOTS = 8, SLOT = 64, LOW = 3, SOON_MS = 500 };

/* Names the client that sends next: they keep to no order, and one says more than another. */
static const int speakers[MESSAGES] = {0, 1, 2, 2, 1, 0, 2, 1, 2, 0, 2, 1, 1, 2, 0, 2, 1, 0};

static struct lab_host server;
static struct lab_host clients[CLIENTS];
static struct ibv_qp* to_client[CLIENTS]; /* the server's ends */
static struct ibv_srq* srq;

static void post_shared_receive(uint64_t slot) {
    struct ibv_sge sge = lab_sge(&server, (uint32_t)slot * SLOT, SLOT);
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    /* YOUR TURN 2: post it to the shared receive queue with ibv_post_srq_recv(srq, &wr, &bad). */
    (void)wr;
    (void)bad;
}

/* Asks for IBV_EVENT_SRQ_LIMIT_REACHED, once, when fewer than LOW receives are left. */
static void arm_limit(void) {
    /* YOUR TURN 3: ibv_modify_srq() with srq_limit LOW and the mask IBV_SRQ_LIMIT. */
}

/* Returns true if the limit was reached since last asked. Does not wait. */
static int limit_was_reached(void) {
    struct pollfd look = {.fd = server.context->async_fd, .events = POLLIN};
    int reached = 0;
    while (poll(&look, 1, 0) == 1) { /* events of ports come as well */
        struct ibv_async_event event;
        must(ibv_get_async_event(server.context, &event) == 0, "ibv_get_async_event");
        reached |= event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED;
        ibv_ack_async_event(&event);
    }
    return reached;
}

static int client_of(uint32_t qpn) {
    /* YOUR TURN 5: a completion says by qp_num through which queue pair the message came. Which
       client is at the other end of it? */
    return qpn == 0 ? -1 : 0;
}

static void set_up(void) {
    lab_open(&server, 0);
    /* YOUR TURN 1: make the shared receive queue with ibv_create_srq(server.pd, &init):
       init.attr has max_wr SLOTS and max_sge 1. */
    for (int i = 0; i < CLIENTS; ++i) {
        lab_open(&clients[i], i + 1);
        lab_create_qp(&clients[i], NULL);
        lab_create_qp(&server, srq);
        to_client[i] = server.qp;
        lab_to_init(clients[i].qp);
        lab_to_init(to_client[i]);
    }
    for (uint64_t slot = 0; slot < SLOTS && srq != NULL; ++slot) {
        post_shared_receive(slot);
    }
    for (int i = 0; i < CLIENTS; ++i) {
        lab_to_rtr(clients[i].qp, server.port.lid, to_client[i]->qp_num);
        lab_to_rtr(to_client[i], clients[i].port.lid, clients[i].qp->qp_num);
        lab_to_rts(clients[i].qp, 14, 7, 7);
        lab_to_rts(to_client[i], 14, 7, 7);
    }
}

static void send_from(int i, int number) {
    snprintf(clients[i].memory, SLOT, "message %d", number);
    struct ibv_sge sge = lab_sge(&clients[i], 0, SLOT);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(clients[i].qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(clients[i].cq);
}

int main(void) {
    set_up();
    must(srq != NULL, "a shared receive queue");
    arm_limit();
    int count[CLIENTS] = {0};
    uint64_t used[SLOTS];
    int free_slots = 0; /* read, and not posted again yet */
    int refills = 0;
    for (int n = 0; n < MESSAGES; ++n) {
        send_from(speakers[n], n);
        const struct ibv_wc wc = lab_wait_success(server.cq);
        const int who = client_of(wc.qp_num);
        must(who >= 0, "a client whose queue pair it is");
        ++count[who];
        used[free_slots++] = wc.wr_id;
        if (limit_was_reached()) {
            ++refills;
            /* YOUR TURN 4: post all `used` slots anew (free_slots of them, then it is 0), and
               ask for the next event: an event comes once. */
            (void)used;
            free_slots = 0;
        }
    }
    printf("from the clients: %d, %d, %d; refilled %d times\n", count[0], count[1], count[2],
           refills);

    for (int i = 0; i < CLIENTS; ++i) {
        must(ibv_destroy_qp(to_client[i]) == 0, "ibv_destroy_qp");
        lab_close(&clients[i]);
    }
    /* YOUR TURN 6: destroy the shared receive queue, once nobody uses it any more. */
    server.qp = NULL;
    lab_close(&server);
    return EXIT_SUCCESS;
}
