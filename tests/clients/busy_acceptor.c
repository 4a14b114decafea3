/* busy_acceptor PORT [ADDRESS]: a server that computes for longer than a thread may spin before
 * it accepts, as one does that fills its buffers first. With ADDRESS: the client, which must be
 * connected all the same, and told the number that the server sends. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kNumber = 4711, kMilliseconds = 1500, kWaitMs = 30000 };

static void check(int holds, const char* what) {
    if (!holds) {
        fprintf(stderr, "failed: %s\n", what);
        exit(1);
    }
}

static double used_ms(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

static void compute(void) {
    const double end = used_ms() + kMilliseconds;
    while (used_ms() < end) {
    }
}

/* Returns the next event, which must be of that kind. */
static struct rdma_cm_event* next_event(struct rdma_event_channel* events,
                                        enum rdma_cm_event_type wanted) {
    struct rdma_cm_event* event = NULL;
    check(rdma_get_cm_event(events, &event) == 0, "an event");
    if (event->event != wanted) {
        fprintf(stderr, "%s, status %d\n", rdma_event_str(event->event), event->status);
        check(0, rdma_event_str(wanted));
    }
    return event;
}

static void make_queue_pair(struct rdma_cm_id* id) {
    struct ibv_qp_init_attr wanted = {.cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    check(rdma_create_qp(id, NULL, &wanted) == 0, "a queue pair");
}

static void serve(struct rdma_event_channel* events, struct rdma_cm_id* id,
                  struct sockaddr_in* address) {
    check(rdma_bind_addr(id, (struct sockaddr*)address) == 0, "bind");
    check(rdma_listen(id, 1) == 0, "listen");
    struct rdma_cm_event* event = next_event(events, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id* const client = event->id;
    rdma_ack_cm_event(event);
    make_queue_pair(client);
    compute();
    const int number = kNumber;
    struct rdma_conn_param answer = {.private_data = &number, .private_data_len = sizeof number};
    check(rdma_accept(client, &answer) == 0, "accept");
    rdma_ack_cm_event(next_event(events, RDMA_CM_EVENT_ESTABLISHED));
    rdma_ack_cm_event(next_event(events, RDMA_CM_EVENT_DISCONNECTED));
    rdma_destroy_qp(client);
    rdma_destroy_id(client);
}

static void connect_to(struct rdma_event_channel* events, struct rdma_cm_id* id,
                       struct sockaddr_in* address) {
    check(rdma_resolve_addr(id, NULL, (struct sockaddr*)address, kWaitMs) == 0, "an address");
    rdma_ack_cm_event(next_event(events, RDMA_CM_EVENT_ADDR_RESOLVED));
    check(rdma_resolve_route(id, kWaitMs) == 0, "a route");
    rdma_ack_cm_event(next_event(events, RDMA_CM_EVENT_ROUTE_RESOLVED));
    make_queue_pair(id);
    struct rdma_conn_param request = {.retry_count = 7};
    check(rdma_connect(id, &request) == 0, "connect");
    struct rdma_cm_event* event = next_event(events, RDMA_CM_EVENT_ESTABLISHED);
    int number = 0;
    memcpy(&number, event->param.conn.private_data, sizeof number);
    rdma_ack_cm_event(event);
    check(number == kNumber, "the server's number");
    check(rdma_disconnect(id) == 0, "disconnect");
    rdma_ack_cm_event(next_event(events, RDMA_CM_EVENT_DISCONNECTED));
    rdma_destroy_qp(id);
}

int main(int count, char** words) {
    check(count == 2 || count == 3, "busy_acceptor PORT [ADDRESS]");
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_port = htons((uint16_t)strtoul(words[1], NULL, 10));
    check(count == 2 || inet_pton(AF_INET, words[2], &address.sin_addr) == 1, "an address");
    struct rdma_event_channel* const events = rdma_create_event_channel();
    struct rdma_cm_id* id = NULL;
    check(events != NULL && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0, "an id");
    if (count == 2) {
        serve(events, id, &address);
    } else {
        connect_to(events, id, &address);
    }
    rdma_destroy_id(id);
    rdma_destroy_event_channel(events);
    return 0;
}
