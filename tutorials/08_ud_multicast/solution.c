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
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    must(ibv_modify_qp(host->qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
         "to INIT");
    attr.qp_state = IBV_QPS_RTR;
    must(ibv_modify_qp(host->qp, &attr, IBV_QP_STATE) == 0, "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = LAB_PSN;
    must(ibv_modify_qp(host->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "to RTS");
}

static void post_receives(struct lab_host* host) {
    for (uint32_t i = 0; i < 2; ++i) {
        struct ibv_sge sge = lab_sge(host, i * 128, GRH + MESSAGE);
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        struct ibv_recv_wr* bad = NULL;
        must(ibv_post_recv(host->qp, &wr, &bad) == 0, "ibv_post_recv");
    }
}

static struct ibv_ah* handle_to(union ibv_gid gid) {
    struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1, .grh = {.dgid = gid, .hop_limit = 1}};
    struct ibv_ah* ah = ibv_create_ah(speaker.pd, &attr);
    must(ah != NULL, "ibv_create_ah");
    return ah;
}

static void say(struct ibv_ah* ah, uint32_t qpn, const char* words) {
    must(ah != NULL, "an address handle");
    memset(speaker.memory, 0, MESSAGE);
    strcpy(speaker.memory, words);
    struct ibv_sge sge = lab_sge(&speaker, 0, MESSAGE);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = QKEY;
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(speaker.qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(speaker.cq);
}

static void hear(int which) {
    struct lab_host* host = &listeners[which];
    const struct ibv_wc wc = lab_wait_success(host->cq);
    printf("listener %d hears %u bytes: %s\n", which, wc.byte_len - GRH,
           host->memory + wc.wr_id * 128 + GRH);
}

int main(void) {
    lab_open(&speaker, 0);
    bring_up(&speaker);
    for (int i = 0; i < 2; ++i) {
        lab_open(&listeners[i], i + 1);
        bring_up(&listeners[i]);
        must(ibv_attach_mcast(listeners[i].qp, &group, 0) == 0, "ibv_attach_mcast");
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

    must(ibv_destroy_ah(to_one) == 0, "ibv_destroy_ah");
    must(ibv_destroy_ah(to_all) == 0, "ibv_destroy_ah");
    for (int i = 0; i < 2; ++i) {
        must(ibv_detach_mcast(listeners[i].qp, &group, 0) == 0, "ibv_detach_mcast");
    }
    lab_close(&speaker);
    lab_close(&listeners[0]);
    lab_close(&listeners[1]);
    return EXIT_SUCCESS;
}
