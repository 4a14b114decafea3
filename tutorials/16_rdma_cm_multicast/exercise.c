/* Lesson 16: a group by address. rdma_cm joins it, and says how to send to it. */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <simverbs/simverbs.h>

#include "lab.h"

enum { GRH = 40, BYTES = 64, SLOT = GRH + BYTES, SLOTS = 2 };

/* Two listen, h2 speaks. */
struct member {
    const char* name;
    struct rdma_event_channel* channel;
    struct rdma_cm_id* id;
    struct ibv_mr* mr; /* `heard` and `said` */
    struct ibv_ah* ah; /* the way to the group */
    uint32_t qpn;      /* of the group */
    uint32_t qkey;     /* likewise */
    char heard[SLOTS * SLOT];
    char said[BYTES];
};
static struct member listeners[2] = {{.name = "h0"}, {.name = "h1"}};
static struct member speaker = {.name = "h2"};

/* ---- given ----------------------------------------------------------------------------------- */

/* Host number n of a world has the address 127.77.0.n. */
static struct sockaddr_in address_of(const char* text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    must(inet_pton(AF_INET, text, &address.sin_addr) == 1, "inet_pton");
    return address;
}

static struct sockaddr_in address_of_group(void) {
    return address_of("239.1.2.3");
}

static void post_receive(struct member* member, int slot) {
    must(rdma_post_recv(member->id, (void*)(intptr_t)slot, member->heard + slot * SLOT, SLOT,
                        member->mr) == 0,
         "rdma_post_recv");
}

static void make_queue_pair(struct member* member) {
    struct ibv_qp_init_attr init = {
        .cap = {.max_send_wr = 4, .max_recv_wr = SLOTS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD,
        .sq_sig_all = 1};
    must(rdma_create_qp(member->id, NULL, &init) == 0, "rdma_create_qp");
    member->mr =
        rdma_reg_msgs(member->id, member->heard, sizeof member->heard + sizeof member->said);
    must(member->mr != NULL, "rdma_reg_msgs");
}

/* Prints the next message that a listener has. */
static void hear(struct member* listener) {
    const struct ibv_wc wc = lab_wait_success(listener->id->recv_cq);
    printf("%s hears %u bytes: %s\n", listener->name, wc.byte_len - GRH,
           listener->heard + wc.wr_id * SLOT + GRH);
}

static void close_member(struct member* member) {
    must(member->ah == NULL || ibv_destroy_ah(member->ah) == 0, "ibv_destroy_ah");
    rdma_destroy_qp(member->id);
    must(rdma_dereg_mr(member->mr) == 0, "rdma_dereg_mr");
    must(rdma_destroy_id(member->id) == 0, "rdma_destroy_id");
    rdma_destroy_event_channel(member->channel);
}

/* ---- yours ----------------------------------------------------------------------------------- */

/* An id for datagrams on the host of that address, its queue pair, and its receives. */
static void open_member(struct member* member, const char* address) {
    member->channel = rdma_create_event_channel();
    must(member->channel != NULL, "rdma_create_event_channel");
    struct sockaddr_in own = address_of(address);
    /* YOUR TURN 1: create an id for datagrams (RDMA_PS_UDP) on the channel, bind it to `own`, which
       gives it a device, make its queue pair, and post a receive in each slot. */
    (void)own;
    (void)make_queue_pair;
    (void)post_receive;
}

/* Joins the group. The event has all that a sender needs: where to, which queue pair, which key. */
static void join(struct member* member, uint16_t flags) {
    struct sockaddr_in group = address_of_group();
    errno = 0;
    must(member->id != NULL, "an id that can join");
    /* YOUR TURN 2: join the group with rdma_join_multicast_ex(), whose structure takes the address
       and `flags`. Wait for RDMA_CM_EVENT_MULTICAST_JOIN. Its param.ud has the attributes of an
       address handle, the number of the queue pair and the key: keep them in `member`, then
       acknowledge the event. */
    (void)group;
    (void)flags;
}

static void leave(struct member* member) {
    struct sockaddr_in group = address_of_group();
    /* YOUR TURN 3: leave the group. */
    (void)member;
    (void)group;
}

/* One datagram to the group. */
static void speak(const char* text) {
    snprintf(speaker.said, BYTES, "%s", text);
    struct ibv_sge sge = {
        .addr = (uintptr_t)speaker.said, .length = BYTES, .lkey = speaker.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    /* YOUR TURN 4: say where to: the address handle, the queue pair and the key of the group. */
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(speaker.id->qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(speaker.id->send_cq);
}

int main(void) {
    /* For datagrams rdma_create_qp() goes as far as RTS, before anybody can post a receive. */
    must(simverbs_allow_misuse("no_receive_at_rtr", 1) == 0, simverbs_last_error());
    open_member(&listeners[0], "127.77.0.0");
    open_member(&listeners[1], "127.77.0.1");
    open_member(&speaker, "127.77.0.2");
    join(&listeners[0], RDMA_MC_JOIN_FLAG_FULLMEMBER);
    join(&listeners[1], RDMA_MC_JOIN_FLAG_FULLMEMBER);
    join(&speaker, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);

    speak("to all of you");
    hear(&listeners[0]);
    hear(&listeners[1]);

    leave(&listeners[1]);
    speak("to whoever is still here");
    hear(&listeners[0]);
    struct ibv_wc wc;
    must(simverbs_advance_ps(1000LL * 1000 * 1000) == 0, "a millisecond");
    must(ibv_poll_cq(listeners[1].id->recv_cq, 1, &wc) == 0, "silence at h1");
    must(ibv_poll_cq(speaker.id->recv_cq, 1, &wc) == 0, "silence at h2");

    leave(&listeners[0]);
    leave(&speaker);
    close_member(&listeners[0]);
    close_member(&listeners[1]);
    close_member(&speaker);
    return EXIT_SUCCESS;
}
