/* Lesson 14: a connection that outlives its cable. Each host has two ports on two switches; the
 * connection runs over port 1 and has port 2 as its alternate path. */
#include <poll.h>

#include <simverbs/simverbs.h>

#include "lab.h"

static const int64_t kMs = 1000LL * 1000 * 1000; /* ps */

static struct lab_host h0, h1;
static int messages;

static uint16_t lid_of(struct lab_host* host, uint8_t port) {
    struct ibv_port_attr attr;
    must(ibv_query_port(host->context, port, &attr) == 0, "ibv_query_port");
    return attr.lid;
}

/* Tells the queue pair of `host` its alternate path: over its own port `port` to the port of the
 * same number at `peer`; and asks for it to be armed. */
static void load_alternate(struct lab_host* host, struct lab_host* peer, uint8_t port) {
    struct ibv_qp_attr attr = {
        .alt_ah_attr = {.dlid = lid_of(peer, port), .port_num = port},
        .alt_port_num = port,
        .alt_timeout = 14,
        .path_mig_state = IBV_MIG_REARM,
    };
    must(ibv_modify_qp(host->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) == 0,
         "an alternate path");
}

static void message(void) {
    struct ibv_sge sge = lab_sge(&h1, 0, 64);
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad_receive = NULL;
    must(ibv_post_recv(h1.qp, &receive, &bad_receive) == 0, "ibv_post_recv");
    snprintf(h0.memory, 64, "message %d", messages);
    sge = lab_sge(&h0, 0, 64);
    struct ibv_send_wr send = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(h0.qp, &send, &bad) == 0, "ibv_post_send");
    lab_wait_success(h0.cq);
    lab_wait_success(h1.cq);
    ++messages;
}

/* Waits for IBV_EVENT_PATH_MIG of `host`; other events are passed over. */
static void wait_for_migration(struct lab_host* host) {
    struct ibv_async_event event;
    do {
        must(ibv_get_async_event(host->context, &event) == 0, "ibv_get_async_event");
        ibv_ack_async_event(&event);
    } while (event.event_type != IBV_EVENT_PATH_MIG);
}

static void hear_of_migration(struct lab_host* host, const char* name) {
    wait_for_migration(host);
    struct pollfd events = {.fd = host->context->async_fd, .events = POLLIN};
    must(poll(&events, 1, 0) == 0, "an event that nobody has taken");
    printf("%s has migrated\n", name);
}

static void cut(int port, int is_cut) {
    must(simverbs_set_link(port == 1 ? "h0-a" : "h0-b", !is_cut) == 0, simverbs_last_error());
    must(simverbs_advance_ps(5 * kMs) == 0, "5 ms"); /* ports need a while to come up */
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_connect(&h0, &h1); /* over port 1 */
    message();

    load_alternate(&h0, &h1, 2);
    load_alternate(&h1, &h0, 2);
    message();

    cut(1, 1);
    message(); /* lost on port 1, until the retries are used up; then it goes by port 2 */
    hear_of_migration(&h0, "h0");
    hear_of_migration(&h1, "h1");
    cut(1, 0); /* somebody plugs it in again */

    load_alternate(&h0, &h1, 1);
    load_alternate(&h1, &h0, 1);
    message();

    cut(2, 1);
    message();
    hear_of_migration(&h0, "h0");
    hear_of_migration(&h1, "h1");

    printf("%d messages arrived\n", messages);
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
