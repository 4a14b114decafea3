/* Lesson 15: two programs that know nothing of each other but an address. librdmacm finds the way,
 * asks, answers and parts; the events say how far it has come. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "lab.h"

enum { PORT = 7471, PATIENCE_MS = 2000, BYTES = 64 };

/* One of the two programs: h0 serves, h1 asks. Each has a channel of its own for its events. */
struct end {
    const char* name;
    struct rdma_event_channel* channel;
    struct rdma_cm_id* id; /* the connection */
    struct ibv_mr* mr;     /* `heard` and `said` */
    char heard[BYTES];
    char said[BYTES];
};
static struct end server = {.name = "h0"}, client = {.name = "h1"};

/* The news of an event. */
struct news {
    enum rdma_cm_event_type type;
    int status; /* 0, -errno, or the reason of a rejection */
    struct rdma_cm_id* id;
    char text[BYTES]; /* private data */
};

/* ---- given ----------------------------------------------------------------------------------- */

/* Host number n of a world has the address 127.77.0.n. */
static struct sockaddr_in address_of_server(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    must(inet_pton(AF_INET, "127.77.0.0", &address.sin_addr) == 1, "inet_pton");
    return address;
}

/* The parameters of a connection, with a text as its private data. */
static struct rdma_conn_param with_text(const char* text) {
    return (struct rdma_conn_param){.private_data = text,
                                    .private_data_len = (uint8_t)(strlen(text) + 1),
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
}

/* A queue pair in INIT, its completion queues, and a region: all of the id's device. */
static void make_queue_pair(struct end* end) {
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1};
    must(rdma_create_qp(end->id, NULL, &init) == 0, "rdma_create_qp");
    end->mr = rdma_reg_msgs(end->id, end->heard, sizeof end->heard + sizeof end->said);
    must(end->mr != NULL, "rdma_reg_msgs");
}

static void post_receive(struct end* end) {
    must(rdma_post_recv(end->id, NULL, end->heard, BYTES, end->mr) == 0, "rdma_post_recv");
}

/* Sends a text, and waits until it has come. */
static void tell(struct end* from, struct end* to, const char* text) {
    snprintf(from->said, BYTES, "%s", text);
    must(rdma_post_send(from->id, NULL, from->said, BYTES, from->mr, 0) == 0, "rdma_post_send");
    lab_wait_success(from->id->send_cq);
    lab_wait_success(to->id->recv_cq);
    printf("%s hears: %s\n", to->name, to->heard);
}

/* The reverse of make_queue_pair(), and of the id. */
static void end_connection(struct end* end) {
    struct ibv_wc wc;
    while (ibv_poll_cq(end->id->recv_cq, 1, &wc) == 1 ||
           ibv_poll_cq(end->id->send_cq, 1, &wc) == 1) {
    }
    rdma_destroy_qp(end->id);
    must(rdma_dereg_mr(end->mr) == 0, "rdma_dereg_mr");
    must(rdma_destroy_id(end->id) == 0, "rdma_destroy_id");
}

/* ---- yours ----------------------------------------------------------------------------------- */

/* Waits for the next event of a channel. What it points to is gone when it has been acknowledged,
 * and an id cannot be destroyed before its events are. */
static struct news next_event(struct end* end) {
    struct rdma_cm_event* event = NULL;
    must(rdma_get_cm_event(end->channel, &event) == 0, "rdma_get_cm_event");
    struct news news = {.type = event->event, .status = event->status, .id = event->id};
    /* YOUR TURN 1: copy what the peer has written along, event->param.conn.private_data, to
       news.text: at most BYTES - 1 of its private_data_len bytes, none where it is NULL. Then
       acknowledge the event. */
    printf("%s: %s\n", end->name, rdma_event_str(news.type));
    return news;
}

static struct news expect(struct end* end, enum rdma_cm_event_type type) {
    const struct news news = next_event(end);
    must(news.type == type, rdma_event_str(type));
    return news;
}

/* The listening id: for the address of h0 and PORT. */
static struct rdma_cm_id* listen_for_requests(void) {
    struct rdma_cm_id* listener = NULL;
    (void)address_of_server;
    /* YOUR TURN 2: create the id on the server's channel (RDMA_PS_TCP), bind it to
       address_of_server(), and listen. */
    return listener;
}

/* An id of the client that knows its device and its route to the server. */
static void find_server(void) {
    /* YOUR TURN 3: create client.id on the client's channel, resolve the address of the server,
       expect() that it is resolved, then the same with the route. */
}

/* Asks for a service. */
static void request(const char* service) {
    errno = 0;
    must(client.id != NULL, "an id of the client");
    make_queue_pair(&client);
    post_receive(&client);
    /* YOUR TURN 4: connect, with the name of the service as private data: with_text(). */
    (void)service;
    (void)with_text;
}

/* Takes the request that has come: accepts who asks for "time", rejects everybody else. */
static void answer(void) {
    const struct news asked = expect(&server, RDMA_CM_EVENT_CONNECT_REQUEST);
    /* YOUR TURN 5: asked.id is a new id, and asked.text is what the client wants. Reject everything
       but "time", with the private data "only time", and destroy that id. For "time", the id is
       server.id, the connection: make its queue pair, post a receive, and accept with the text
       "welcome". */
    (void)asked;
}

/* Parts: who wants to go disconnects, and the other does when it hears of it. */
static void part(void) {
    /* YOUR TURN 6: the client disconnects, the server hears of it and does so, too, and the client
       hears of that. */
    end_connection(&client);
    end_connection(&server);
}

int main(void) {
    server.channel = rdma_create_event_channel();
    client.channel = rdma_create_event_channel();
    must(server.channel != NULL && client.channel != NULL, "rdma_create_event_channel");
    struct rdma_cm_id* const listener = listen_for_requests();

    find_server();
    request("weather");
    answer();
    const struct news refused = expect(&client, RDMA_CM_EVENT_REJECTED);
    printf("h1 reads: %s\n", refused.text);
    end_connection(&client);

    find_server();
    request("time");
    answer();
    const struct news accepted = expect(&client, RDMA_CM_EVENT_ESTABLISHED);
    printf("h1 reads: %s\n", accepted.text);
    expect(&server, RDMA_CM_EVENT_ESTABLISHED);

    tell(&server, &client, "a quarter past nine");
    tell(&client, &server, "thank you");

    part();
    must(rdma_destroy_id(listener) == 0, "rdma_destroy_id");
    rdma_destroy_event_channel(client.channel);
    rdma_destroy_event_channel(server.channel);
    return EXIT_SUCCESS;
}
