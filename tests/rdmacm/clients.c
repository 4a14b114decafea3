/* clients COUNT: a server and so many clients that begin at once, each in a thread with blocking
 * event channels, with the world in their process. Says "N messages" once all have arrived; 1:
 * something failed. */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPort = 7471, kMessages = 20, kTimeoutMs = 2000, kMaxClients = 16 };

static sem_t listening;

static void check(int failed, const char* what) {
    if (failed) {
        perror(what);
        exit(1);
    }
}

static struct rdma_cm_id* await_event(struct rdma_event_channel* channel,
                                      enum rdma_cm_event_type wanted) {
    struct rdma_cm_event* event = NULL;
    check(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
    if (event->event != wanted) {
        fprintf(stderr, "%s, status %d\n", rdma_event_str(event->event), event->status);
        exit(1);
    }
    struct rdma_cm_id* id = event->id;
    rdma_ack_cm_event(event);
    return id;
}

static void make_queue_pair(struct rdma_cm_id* id) {
    struct ibv_qp_init_attr init;
    memset(&init, 0, sizeof init);
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap.max_send_wr = init.cap.max_recv_wr = kMessages;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    check(rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

static struct rdma_conn_param parameters(void) {
    struct rdma_conn_param given;
    memset(&given, 0, sizeof given);
    given.responder_resources = given.initiator_depth = 1;
    given.retry_count = given.rnr_retry_count = 7;
    return given;
}

static struct sockaddr_in address(uint32_t host) {
    struct sockaddr_in made;
    memset(&made, 0, sizeof made);
    made.sin_family = AF_INET;
    made.sin_port = htons(kPort);
    made.sin_addr.s_addr = htonl(host);
    return made;
}

/* Takes a connection into a channel of its own, and its messages. */
static void serve_one(struct rdma_cm_id* id) {
    struct rdma_event_channel* channel = rdma_create_event_channel();
    check(channel == NULL, "rdma_create_event_channel");
    check(rdma_migrate_id(id, channel), "rdma_migrate_id");
    make_queue_pair(id);
    char bytes[8];
    struct ibv_mr* mr = rdma_reg_msgs(id, bytes, sizeof bytes);
    for (int i = 0; i < kMessages; ++i) {
        check(rdma_post_recv(id, NULL, bytes, sizeof bytes, mr), "rdma_post_recv");
    }
    struct rdma_conn_param given = parameters();
    check(rdma_accept(id, &given), "rdma_accept");
    await_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    for (int i = 0; i < kMessages; ++i) {
        struct ibv_wc wc;
        check(rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS, "receive");
    }
    await_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(id);
    rdma_dereg_mr(mr);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
}

static void* serve(void* argument) {
    const int* clients = argument;
    struct rdma_event_channel* channel = rdma_create_event_channel();
    check(channel == NULL, "rdma_create_event_channel");
    struct rdma_cm_id* listener = NULL;
    check(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
    struct sockaddr_in any = address(INADDR_ANY);
    check(rdma_bind_addr(listener, (struct sockaddr*)&any), "rdma_bind_addr");
    check(rdma_listen(listener, *clients), "rdma_listen");
    sem_post(&listening);
    for (int i = 0; i < *clients; ++i) {
        serve_one(await_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST));
    }
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(channel);
    return NULL;
}

static void* ask(void* unused) {
    (void)unused;
    struct rdma_event_channel* channel = rdma_create_event_channel();
    check(channel == NULL, "rdma_create_event_channel");
    struct rdma_cm_id* id = NULL;
    check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
    struct sockaddr_in to = address(0x7F4D0000);
    check(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, kTimeoutMs), "rdma_resolve_addr");
    await_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, kTimeoutMs), "rdma_resolve_route");
    await_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    make_queue_pair(id);
    char bytes[8] = "message";
    struct ibv_mr* mr = rdma_reg_msgs(id, bytes, sizeof bytes);
    struct rdma_conn_param given = parameters();
    check(rdma_connect(id, &given), "rdma_connect");
    await_event(channel, RDMA_CM_EVENT_ESTABLISHED);
    for (int i = 0; i < kMessages; ++i) {
        struct ibv_wc wc;
        check(rdma_post_send(id, NULL, bytes, sizeof bytes, mr, 0), "rdma_post_send");
        check(rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS, "send");
    }
    check(rdma_disconnect(id), "rdma_disconnect");
    await_event(channel, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(id);
    rdma_dereg_mr(mr);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return NULL;
}

int main(int count, char** words) {
    int clients = count == 2 ? (int)strtol(words[1], NULL, 10) : 0;
    if (clients < 1 || clients > kMaxClients) {
        fputs("usage: clients COUNT\n", stderr);
        return 2;
    }
    pthread_t server;
    pthread_t asking[kMaxClients];
    sem_init(&listening, 0, 0);
    check(pthread_create(&server, NULL, serve, &clients), "pthread_create");
    sem_wait(&listening);
    for (int i = 0; i < clients; ++i) {
        check(pthread_create(&asking[i], NULL, ask, NULL), "pthread_create");
    }
    for (int i = 0; i < clients; ++i) {
        pthread_join(asking[i], NULL);
    }
    pthread_join(server, NULL);
    printf("%d messages\n", clients * kMessages);
    return 0;
}
