/* Lesson 8: datagrams. A speaker sends one to a listener by an address handle, and one to a group
 * of which both listeners are members. Three hosts on Ethernet (RoCE), where addresses are GIDs. */
#include "lab.h"

enum {
    GRH = 40 /* bytes before each datagram */,
    MESSAGE = 32,
    QKEY = 0x1234,
    GROUP_QPN = 0xFFFFFF
};

static const union ibv_gid group = {
    {0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42}}; /* ff12::42 */
static struct lab_host speaker, listeners[2];

/* A UD queue pair has no peer. Its steps need less: the port and the Q_Key, and the own PSN. */
static void bring_up(struct lab_host* host) {
    struct ibv_qp_init_attr init = {
        .send_cq = host->cq,
        .recv_cq = host->cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    host->qp = ibv_create_qp(host->pd, &init);
    must(host->qp != NULL, "ibv_create_qp");
    /* YOUR TURN 1: to INIT with port_num 1 and qkey QKEY (bits: IBV_QP_STATE, IBV_QP_PKEY_INDEX,
       IBV_QP_PORT, IBV_QP_QKEY), to RTR (IBV_QP_STATE alone), to RTS (IBV_QP_STATE and
       IBV_QP_SQ_PSN). */
}

static void post_receives(struct lab_host* host) {
    for (uint32_t i = 0; i < 2; ++i) {
        /* YOUR TURN 2: a receive for a datagram at offset i * 128, wr_id i. How many bytes does
           it take? The message has MESSAGE, and before it comes the global route header. */
        struct ibv_sge sge = lab_sge(host, i * 128, MESSAGE);
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        must(ibv_post_recv(host->qp, &wr, &bad) == 0, "ibv_post_recv");
    }
}

static struct ibv_ah* handle_to(union ibv_gid gid) {
    /* YOUR TURN 3: an address handle of the speaker's PD with ibv_create_ah(). In its struct
       ibv_ah_attr: port_num 1, is_global 1, and in grh the dgid and a hop_limit of 1. */
    (void)gid;
    return NULL;
}

static void say(struct ibv_ah* ah, uint32_t qpn, const char* words) {
    must(ah != NULL, "an address handle");
    memset(speaker.memory, 0, MESSAGE);
    strcpy(speaker.memory, words);
    struct ibv_sge sge = lab_sge(&speaker, 0, MESSAGE);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    /* YOUR TURN 4: each datagram says where it goes: wr.wr.ud has ah, remote_qpn and
       remote_qkey. */
    (void)qpn;
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(speaker.qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(speaker.cq);
}

static void hear(int which) {
    struct lab_host* host = &listeners[which];
    const struct ibv_wc wc = lab_wait_success(host->cq);
    /* YOUR TURN 5: print what came: its words lie behind the header, and byte_len counts the
       header too. */
    printf("listener %d hears %u bytes: %s\n", which, wc.byte_len, host->memory);
}

int main(void) {
    lab_open(&speaker, 0);
    bring_up(&speaker);
    for (int i = 0; i < 2; ++i) {
        lab_open(&listeners[i], i + 1);
        bring_up(&listeners[i]);
        /* YOUR TURN 6: join the group: ibv_attach_mcast(qp, &group, 0). And leave it again at
           the end of main(), with ibv_detach_mcast(qp, &group, 0). */
        post_receives(&listeners[i]);
    }
    union ibv_gid gid;
    must(ibv_query_gid(listeners[0].context, 1, 0, &gid) == 0, "ibv_query_gid");

    struct ibv_ah* to_one = handle_to(gid);
    say(to_one, listeners[0].qp->qp_num, "for you alone");
    hear(0);

    struct ibv_ah* to_all = handle_to(group);
    say(to_all, GROUP_QPN, "to whom it may concern");
    hear(0);
    hear(1);

    /* YOUR TURN 7: destroy both address handles with ibv_destroy_ah(), and leave the group (see
       6). */
    lab_close(&speaker);
    lab_close(&listeners[0]);
    lab_close(&listeners[1]);
    return EXIT_SUCCESS;
}
