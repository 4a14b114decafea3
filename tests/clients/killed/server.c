/* server ADDRESS PORT: sends every message back to whoever sent it, on any number of connections,
 * and releases what a connection had when it ends. SIGTERM ends it: it prints how many it had, and
 * how many are left. */
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLength = 64, kClients = 4096 };

struct connection {
    struct rdma_cm_id* id;
    struct ibv_mr* mr;
    char bytes[kLength];
};

struct server {
    struct rdma_event_channel* events;
    struct ibv_comp_channel* completions;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct connection* connections[kClients];
    int live;
    int accepted;
    int failed; /* requests whose client was gone before it was connected */
};

static volatile sig_atomic_t ended;

static void end(int number) {
    (void)number;
    ended = 1;
}

static void give_up(const char* what) {
    perror(what);
    exit(1);
}

/* The first connection brings the device, on which everything else is made once. */
static void open_device(struct server* server, struct ibv_context* context) {
    if (server->pd != NULL) {
        return;
    }
    server->pd = ibv_alloc_pd(context);
    server->completions = ibv_create_comp_channel(context);
    if (server->pd == NULL || server->completions == NULL) {
        give_up("device");
    }
    server->cq = ibv_create_cq(context, 2 * kClients, NULL, server->completions, 0);
    if (server->cq == NULL || ibv_req_notify_cq(server->cq, 0) != 0) {
        give_up("completion queue");
    }
}

static struct connection** place_of(struct server* server, const struct rdma_cm_id* id) {
    for (int i = 0; i < kClients; ++i) {
        if ((id == NULL && server->connections[i] == NULL) ||
            (id != NULL && server->connections[i] != NULL && server->connections[i]->id == id)) {
            return &server->connections[i];
        }
    }
    errno = ENOENT;
    give_up("connection");
    return NULL;
}

static void close_client(struct server* server, struct rdma_cm_id* id) {
    struct connection** place = place_of(server, id);
    if (id->qp != NULL) {
        rdma_destroy_qp(id);
    }
    ibv_dereg_mr((*place)->mr);
    free(*place);
    *place = NULL;
    --server->live;
}

static void fail_client(struct server* server, struct rdma_cm_id* id) {
    ++server->failed;
    close_client(server, id);
    rdma_destroy_id(id);
}

static void accept_client(struct server* server, struct rdma_cm_id* id) {
    open_device(server, id->verbs);
    struct connection* one = calloc(1, sizeof(*one));
    struct ibv_qp_init_attr attributes = {
        .send_cq = server->cq,
        .recv_cq = server->cq,
        .cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    *place_of(server, NULL) = one;
    one->id = id;
    id->context = one;
    one->mr = ibv_reg_mr(server->pd, one->bytes, kLength, IBV_ACCESS_LOCAL_WRITE);
    if (one->mr == NULL) {
        give_up("ibv_reg_mr");
    }
    struct rdma_conn_param parameters = {.rnr_retry_count = 7};
    ++server->live;
    ++server->accepted;
    /* All of these fail with EINVAL where the client is gone already. */
    if (rdma_create_qp(id, server->pd, &attributes) != 0 ||
        rdma_post_recv(id, one, one->bytes, kLength, one->mr) != 0 ||
        rdma_accept(id, &parameters) != 0) {
        if (errno != EINVAL) {
            give_up("accept");
        }
        fail_client(server, id);
    }
}

static void take_event(struct server* server) {
    struct rdma_cm_event* event = NULL;
    if (rdma_get_cm_event(server->events, &event) != 0) {
        give_up("rdma_get_cm_event");
    }
    struct rdma_cm_id* id = event->id;
    const enum rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    switch (type) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            accept_client(server, id);
            break;
        case RDMA_CM_EVENT_CONNECT_ERROR:
        case RDMA_CM_EVENT_REJECTED:
        case RDMA_CM_EVENT_UNREACHABLE:
            fail_client(server, id);
            break;
        case RDMA_CM_EVENT_DISCONNECTED:
            rdma_disconnect(id);
            close_client(server, id);
            rdma_destroy_id(id);
            break;
        default:
            break;
    }
}

/* A completion of a queue pair that was destroyed meanwhile finds no connection. */
static struct connection* connection_of(struct server* server, uint32_t qp_num) {
    for (int i = 0; i < kClients; ++i) {
        struct connection* one = server->connections[i];
        if (one != NULL && one->id->qp != NULL && one->id->qp->qp_num == qp_num) {
            return one;
        }
    }
    return NULL;
}

static void take_completions(struct server* server) {
    struct ibv_cq* cq = NULL;
    void* context = NULL;
    if (ibv_get_cq_event(server->completions, &cq, &context) != 0) {
        give_up("ibv_get_cq_event");
    }
    ibv_ack_cq_events(cq, 1);
    if (ibv_req_notify_cq(cq, 0) != 0) {
        give_up("ibv_req_notify_cq");
    }
    struct ibv_wc completion;
    while (ibv_poll_cq(cq, 1, &completion) == 1) {
        struct connection* one = connection_of(server, completion.qp_num);
        if (one == NULL || completion.status != IBV_WC_SUCCESS) {
            continue;
        }
        const int sends = completion.opcode == IBV_WC_RECV;
        if (sends ? rdma_post_send(one->id, one, one->bytes, kLength, one->mr, 0) != 0
                  : rdma_post_recv(one->id, one, one->bytes, kLength, one->mr) != 0) {
            give_up("post");
        }
    }
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: server ADDRESS PORT\n");
        return 2;
    }
    const struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    static struct server server;
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
    struct rdma_addrinfo* found = NULL;
    struct rdma_cm_id* listener = NULL;
    server.events = rdma_create_event_channel();
    if (server.events == NULL || rdma_getaddrinfo(argv[1], argv[2], &hints, &found) != 0 ||
        rdma_create_id(server.events, &listener, NULL, RDMA_PS_TCP) != 0 ||
        rdma_bind_addr(listener, found->ai_src_addr) != 0 || rdma_listen(listener, 256) != 0) {
        give_up("listen");
    }
    rdma_freeaddrinfo(found);
    puts("listening");
    fflush(stdout);
    while (!ended) {
        struct pollfd wait[2] = {{.fd = server.events->fd, .events = POLLIN}, {.fd = -1}};
        if (server.completions != NULL) {
            wait[1] = (struct pollfd){.fd = server.completions->fd, .events = POLLIN};
        }
        if (poll(wait, 2, -1) < 0) {
            continue; /* SIGTERM */
        }
        if (wait[0].revents != 0) {
            take_event(&server);
        }
        if (wait[1].revents != 0) {
            take_completions(&server);
        }
    }
    printf("%d accepted, %d of them not connected, %d left\n", server.accepted, server.failed,
           server.live);
    return server.live == 0 ? 0 : 1;
}
