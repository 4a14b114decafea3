/* Datagrams to a group, on Ethernet: both members hear what a third host says. Each receive begins
   with 40 bytes for the global header. */
#include "end.h"

enum { kHeader = 40, kMessage = 32, kQkey = 0x11111111, kGroupQpn = 0xFFFFFF };

static struct end speaker, members[2];

static void bring_up(struct end* end) {
    create_qp(end, IBV_QPT_UD, NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kQkey};
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
          "to INIT");
    attr.qp_state = IBV_QPS_RTR;
    check(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE) == 0, "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = kInitialPsn;
    check(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "to RTS");
}

int main(void) {
    const union ibv_gid group = {{0xFF, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42}};
    open_end(&speaker, 0);
    check(speaker.port.link_layer == IBV_LINK_LAYER_ETHERNET, "a topology on Ethernet");
    bring_up(&speaker);
    for (int i = 0; i < 2; ++i) {
        open_end(&members[i], 1 + i);
        bring_up(&members[i]);
        check(ibv_attach_mcast(members[i].qp, &group, 0) == 0, "ibv_attach_mcast");
        post_receive(&members[i], 1, 0, kHeader + kMessage);
    }

    struct ibv_ah_attr path = {.port_num = 1, .is_global = 1, .grh = {.hop_limit = 1}};
    path.grh.dgid = group;
    struct ibv_ah* ah = ibv_create_ah(speaker.pd, &path);
    check(ah != NULL, "ibv_create_ah");
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = kGroupQpn;
    wr.wr.ud.remote_qkey = kQkey;
    memcpy(speaker.memory, "to whom it may concern", 23);
    post_send(&speaker, &wr, kMessage);
    wait_for(&speaker, IBV_WC_SUCCESS);

    for (int i = 0; i < 2; ++i) {
        const struct ibv_wc wc = wait_for(&members[i], IBV_WC_SUCCESS);
        check(wc.byte_len == kHeader + kMessage, "the length counts the header");
        check((wc.wc_flags & IBV_WC_GRH) != 0, "and there is one");
        check(wc.src_qp == speaker.qp->qp_num, "the completion says who spoke");
        check(memcmp(members[i].memory + kHeader, speaker.memory, kMessage) == 0, "the message");
        check(ibv_detach_mcast(members[i].qp, &group, 0) == 0, "ibv_detach_mcast");
    }
    check(ibv_destroy_ah(ah) == 0, "ibv_destroy_ah");
    close_end(&speaker);
    close_end(&members[0]);
    close_end(&members[1]);
    puts("one datagram, two members");
    return EXIT_SUCCESS;
}
