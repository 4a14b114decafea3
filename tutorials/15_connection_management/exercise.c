/* Lesson 15: who tells the two ends about each other? A small connection manager: letters by
 * datagram, REQ, REP, RTU to connect, DREQ and DREP to part. One letter is lost on the way. */
#include <simverbs/simverbs.h>

#include "lab.h"

enum { GRH = 40, QKEY = 0x80010000, SERVICE = 7, SLOTS = 8, PATIENCE_MS = 20, MOST_MS = 300 };
static const int64_t kMs = 1000LL * 1000 * 1000; /* ps */

enum kind { REQ = 1, REP, RTU, REJ, DREQ, DREP };
static const char* const kind_names[] = {"", "REQ", "REP", "RTU", "REJ", "DREQ", "DREP"};

struct letter {
    enum kind kind;
    uint32_t service; /* of a REQ: what is asked for */
    uint32_t qpn;     /* of the RC queue pair of who writes */
    uint32_t psn;     /* of its first packet */
    uint16_t lid;     /* of its port */
};

enum state { IDLE, REQ_SENT, REP_SENT, ESTABLISHED, DREQ_SENT, CLOSED, REJECTED };

/* One end: the queue pair that is to be connected (host.qp), and a UD queue pair for letters. */
struct end {
    const char* name;
    struct lab_host host;
    struct lab_host mail;
    struct ibv_ah* to_peer; /* the way to the peer's port */
    uint32_t peer_mail_qpn;
    enum state state;
    uint32_t psn;
};
static struct end active = {.name = "h0", .psn = 111}, passive = {.name = "h1", .psn = 222};

/* ---- the post: not yours --------------------------------------------------------------------- */

static void post_letter_receive(struct end* end, uint64_t slot) {
    struct ibv_sge sge = lab_sge(&end->mail, (uint32_t)slot * 128, 128);
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(end->mail.qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void open_end(struct end* end, int which) {
    lab_open(&end->host, which);
    lab_open(&end->mail, which);
    struct ibv_qp_init_attr init = {
        .send_cq = end->mail.cq,
        .recv_cq = end->mail.cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_UD};
    end->mail.qp = ibv_create_qp(end->mail.pd, &init);
    must(end->mail.qp != NULL, "ibv_create_qp");
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    must(ibv_modify_qp(end->mail.qp, &attr,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0,
         "to INIT");
    for (uint64_t slot = 0; slot < SLOTS; ++slot) {
        post_letter_receive(end, slot);
    }
    attr.qp_state = IBV_QPS_RTR;
    must(ibv_modify_qp(end->mail.qp, &attr, IBV_QP_STATE) == 0, "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    must(ibv_modify_qp(end->mail.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0, "to RTS");
}

static void introduce(struct end* end, const struct end* peer) {
    struct ibv_ah_attr attr = {.dlid = peer->mail.port.lid, .port_num = 1};
    end->to_peer = ibv_create_ah(end->mail.pd, &attr);
    must(end->to_peer != NULL, "ibv_create_ah");
    end->peer_mail_qpn = peer->mail.qp->qp_num;
}

/* Fills in who writes. */
static void send_letter(struct end* end, struct letter letter) {
    letter.lid = end->host.port.lid;
    letter.psn = end->psn;
    letter.qpn = end->host.qp == NULL ? 0 : end->host.qp->qp_num;
    printf("%s sends %s\n", end->name, kind_names[letter.kind]);
    memcpy(end->mail.memory + SLOTS * 128, &letter, sizeof letter);
    struct ibv_sge sge = lab_sge(&end->mail, SLOTS * 128, sizeof letter);
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = end->to_peer;
    wr.wr.ud.remote_qpn = end->peer_mail_qpn;
    wr.wr.ud.remote_qkey = QKEY;
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(end->mail.qp, &wr, &bad) == 0, "ibv_post_send");
}

static int next_letter(struct end* end, struct letter* letter) {
    struct ibv_wc wc;
    while (ibv_poll_cq(end->mail.cq, 1, &wc) == 1) {
        must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
        if (wc.opcode == IBV_WC_RECV) {
            memcpy(letter, end->mail.memory + wc.wr_id * 128 + GRH, sizeof *letter);
            post_letter_receive(end, wc.wr_id);
            return 1;
        }
    }
    return 0;
}

/* A queue pair of this end in INIT, with a receive. */
static void prepare_qp(struct end* end) {
    lab_create_qp(&end->host, NULL);
    lab_to_init(end->host.qp);
    struct ibv_sge sge = lab_sge(&end->host, 0, 64);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(end->host.qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* INIT to RTR, towards who wrote `letter`. */
static void ready_to_receive(struct end* end, const struct letter* letter) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_1024,
                               .dest_qp_num = letter->qpn,
                               .rq_psn = letter->psn,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = 12,
                               .ah_attr = {.dlid = letter->lid, .port_num = 1}};
    must(ibv_modify_qp(end->host.qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
}

/* RTR to RTS, with the own PSN. */
static void ready_to_send(struct end* end) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .sq_psn = end->psn,
                               .timeout = 10,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .max_rd_atomic = 1};
    must(ibv_modify_qp(end->host.qp, &attr,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

/* Gives the queue pair's requests back, and takes them. */
static void flush(struct end* end) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    must(ibv_modify_qp(end->host.qp, &attr, IBV_QP_STATE) == 0, "to ERR");
    struct ibv_wc wc;
    while (ibv_poll_cq(end->host.cq, 1, &wc) == 1) {
    }
}

/* ---- the manager ----------------------------------------------------------------------------- */

/* A letter has come for h1, which has called nobody. */
static void passive_receives(const struct letter* letter) {
    switch (letter->kind) {
        case REQ:
            /* YOUR TURN 1: if letter->service is not SERVICE, answer REJ. Else: the first time
               (state IDLE) prepare_qp() and ready_to_receive(); then, and also when the same REQ
               comes again since our REP was lost, answer REP. The state is REP_SENT. */
            (void)prepare_qp;
            (void)ready_to_receive;
            break;
        case RTU:
            /* YOUR TURN 2: the peer has our REP: ready_to_send(), and the state is ESTABLISHED. */
            (void)ready_to_send;
            break;
        case DREQ:
            /* YOUR TURN 3: the peer wants to part: flush(), answer DREP, and the state is
               CLOSED. */
            (void)flush;
            break;
        default:
            break;
    }
}

/* A letter has come for h0, which wanted the connection. */
static void active_receives(const struct letter* letter) {
    switch (letter->kind) {
        case REP:
            /* YOUR TURN 4: in REQ_SENT only (it may come twice): ready_to_receive(),
               ready_to_send(), and answer RTU. The state is ESTABLISHED. */
            break;
        case REJ:
            active.state = REJECTED;
            break;
        case DREP:
            active.state = CLOSED;
            break;
        default:
            break;
    }
}

/* Lets letters come and go until `active` and `passive` are in these states. What was not answered
 * within PATIENCE_MS is sent again. */
static void until(enum state of_active, enum state of_passive, struct letter letter) {
    send_letter(&active, letter);
    int waited = 0;
    for (int ms = 0; ms < MOST_MS; ++ms) {
        struct letter received;
        must(simverbs_advance_ps(kMs) == 0, "a millisecond");
        while (next_letter(&passive, &received)) {
            passive_receives(&received);
        }
        while (next_letter(&active, &received)) {
            active_receives(&received);
        }
        if (active.state == of_active && passive.state == of_passive) {
            return;
        }
        /* YOUR TURN 5: datagrams get lost. When PATIENCE_MS have passed without the answer, send
           `letter` again, as long as the state of `active` still is REQ_SENT or DREQ_SENT. */
        (void)waited;
    }
    must(0, "an answer");
}

static void say_something(void) {
    struct ibv_sge sge = lab_sge(&active.host, 64, 64);
    strcpy(active.host.memory + 64, "over the connection");
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(active.host.qp, &wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(active.host.cq);
    lab_wait_success(passive.host.cq);
    printf("h1 hears: %s\n", passive.host.memory);
}

static void close_end(struct end* end) {
    struct letter late;
    while (next_letter(end, &late)) {
    }
    must(ibv_destroy_ah(end->to_peer) == 0, "ibv_destroy_ah");
    lab_close(&end->mail);
    lab_close(&end->host);
}

int main(void) {
    open_end(&active, 0);
    open_end(&passive, 1);
    introduce(&active, &passive);
    introduce(&passive, &active);
    prepare_qp(&active);

    active.state = REQ_SENT;
    until(REJECTED, IDLE, (struct letter){.kind = REQ, .service = 99}); /* nobody offers that */
    printf("rejected, as it should be\n");

    must(simverbs_drop_nth("h1-s0", "h1", 1, NULL) == 0, simverbs_last_error()); /* the REP */
    active.state = REQ_SENT;
    until(ESTABLISHED, ESTABLISHED, (struct letter){.kind = REQ, .service = SERVICE});
    say_something();

    /* YOUR TURN 6: to part: flush() the own queue pair, set the state to DREQ_SENT, and wait
       until() both are CLOSED, with a letter of kind DREQ. */
    close_end(&active);
    close_end(&passive);
    return EXIT_SUCCESS;
}
