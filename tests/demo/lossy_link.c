/* Two hosts in one process, and a link between them that first loses one packet and then goes down
 * for good. What a verbs program sees of that, and what the trace says happened on the way. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include <simverbs/simverbs.h>

enum {
    kPacketBytes = 1024,
    kBytes = 3 * kPacketBytes,
    kTimeout = 20, /* 4.096 us * 2^20 = 4.3 s until an unacknowledged packet is sent again */
    kRetries = 7,
};
static const char* const kLink = "h0-s0";
static const double kPsPerUs = 1e6;
static const double kPsPerSecond = 1e12;

struct end {
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr;
    struct ibv_qp* qp;
    struct ibv_port_attr port;
    uint8_t memory[kBytes];
};

static struct end h0, h1;

static void check(int held, const char* what) {
    if (!held) {
        fprintf(stderr, "lossy_link: failed: %s (%s)\n", what, simverbs_last_error());
        exit(EXIT_FAILURE);
    }
}

static int64_t virtual_now(void) {
    int64_t now = 0;
    check(simverbs_now_ps(&now) == 0, "simverbs_now_ps");
    return now;
}

static double wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- the trace: every event of the simulation comes by here ---------------------------------- */

static const struct simverbs_field* field(const struct simverbs_record* record, const char* name) {
    for (size_t i = 0; i < record->field_count; ++i) {
        if (strcmp(record->fields[i].name, name) == 0) {
            return &record->fields[i];
        }
    }
    return NULL;
}

static const char* text_of(const struct simverbs_record* record, const char* name) {
    const struct simverbs_field* found = field(record, name);
    return found == NULL ? "" : found->text;
}

static uint64_t number_of(const struct simverbs_record* record, const char* name) {
    const struct simverbs_field* found = field(record, name);
    return found == NULL ? 0 : found->number;
}

/* The few events that tell this story, a line each. */
static void print_record(const struct simverbs_record* record, void* argument) {
    (void)argument;
    char line[128] = "";
    if (strcmp(record->name, "packet_sent") == 0) {
        /* IBA 9.7.5.2.2: the upper bits of the syndrome say what kind of acknowledgement it is. */
        const int negative = number_of(record, "syndrome") >> 5 == 3;
        snprintf(line, sizeof line, "sends %s%s, PSN %" PRIu64 "%s", text_of(record, "opcode"),
                 negative ? " (NAK)" : "", number_of(record, "psn"),
                 number_of(record, "retransmission") != 0 ? "   <- a retransmission" : "");
    } else if (strcmp(record->name, "fault_fired") == 0) {
        snprintf(line, sizeof line, "the fault fires: this packet is lost");
    } else if (strcmp(record->name, "delivered") == 0) {
        snprintf(line, sizeof line, "has the whole message, %" PRIu64 " bytes",
                 number_of(record, "bytes"));
    } else if (strcmp(record->name, "completion") == 0) {
        snprintf(line, sizeof line, "completion: %s", text_of(record, "status"));
    } else if (strcmp(record->name, "link_state") == 0) {
        snprintf(line, sizeof line, "link %s: %s", text_of(record, "link"), text_of(record, "to"));
    } else if (strcmp(record->name, "qp_state") == 0) {
        snprintf(line, sizeof line, "queue pair: %s -> %s (%s)", text_of(record, "from"),
                 text_of(record, "to"), text_of(record, "cause"));
    } else {
        return;
    }
    printf("  %16.3f us  %-3s %s\n", (double)record->time_ps / kPsPerUs, record->node, line);
}

/* ---- plain verbs ------------------------------------------------------------------------------
 */

static void open_end(struct end* end, struct ibv_device* device) {
    end->context = ibv_open_device(device);
    check(end->context != NULL, "ibv_open_device");
    end->pd = ibv_alloc_pd(end->context);
    end->cq = ibv_create_cq(end->context, 16, NULL, NULL, 0);
    end->mr =
        ibv_reg_mr(end->pd, end->memory, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr init = {.send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .cap = {8, 8, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
    end->qp = ibv_create_qp(end->pd, &init);
    check(end->mr != NULL && end->qp != NULL, "ibv_create_qp");
    check(ibv_query_port(end->context, 1, &end->port) == 0, "ibv_query_port");
}

static void connect_to(struct end* end, const struct end* peer) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
          "to INIT");
    memset(&attr, 0, sizeof attr);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer->qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = peer->port.lid;
    attr.ah_attr.port_num = 1;
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "to RTR");
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = kTimeout;
    attr.retry_cnt = kRetries;
    attr.rnr_retry = kRetries;
    attr.max_rd_atomic = 1;
    check(ibv_modify_qp(end->qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                            IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "to RTS");
}

/* An RDMA WRITE from h0's memory to h1's, and its completion. */
static enum ibv_wc_status write_to_h1(uint32_t bytes) {
    struct ibv_sge sge = {(uintptr_t)h0.memory, bytes, h0.mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    wr.wr.rdma.remote_addr = (uintptr_t)h1.memory;
    wr.wr.rdma.rkey = h1.mr->rkey;
    struct ibv_send_wr* bad = NULL;
    check(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
    struct ibv_wc wc;
    int found = 0;
    while (found == 0) {
        found = ibv_poll_cq(h0.cq, 1, &wc); /* an empty poll lets virtual time move on */
    }
    check(found == 1, "ibv_poll_cq");
    return wc.status;
}

static void close_end(struct end* end) {
    check(ibv_destroy_qp(end->qp) == 0 && ibv_destroy_cq(end->cq) == 0 &&
              ibv_dereg_mr(end->mr) == 0 && ibv_dealloc_pd(end->pd) == 0 &&
              ibv_close_device(end->context) == 0,
          "taking everything down");
}

/* ---- the story --------------------------------------------------------------------------------
 */

static void lose_a_packet(void) {
    printf(
        "1. h0 writes %d bytes to h1, in three packets of 1024. The second of them is lost:\n"
        "   h1 sees the third come too early and answers with a NAK; h0 sends again from the\n"
        "   lost one on; the program notices nothing but a few microseconds.\n\n",
        kBytes);
    check(simverbs_drop_nth(kLink, "h0", 2, NULL) == 0, "simverbs_drop_nth");
    memset(h0.memory, 0x5A, kBytes);
    const int64_t before = virtual_now();
    const enum ibv_wc_status status = write_to_h1(kBytes);
    printf("\n   ibv_poll_cq: %s after %.3f us of virtual time; the bytes %s.\n\n",
           ibv_wc_status_str(status), (double)(virtual_now() - before) / kPsPerUs,
           memcmp(h0.memory, h1.memory, kBytes) == 0 ? "are all there" : "are WRONG");
    check(status == IBV_WC_SUCCESS, "a lost packet is made good");
    check(memcmp(h0.memory, h1.memory, kBytes) == 0, "the bytes arrived");
}

static void lose_the_link(void) {
    printf(
        "2. The link goes down and stays down. Nobody answers any more: h0 waits for its time-out\n"
        "   (the exponent %d in ibv_qp_attr: at least 4.3 s), sends again, %d times, and gives "
        "up.\n"
        "   On hardware one waits for that with the program; here time jumps from event to event.\n"
        "\n",
        kTimeout, kRetries);
    check(simverbs_set_link(kLink, 0) == 0, "simverbs_set_link");
    const int64_t before = virtual_now();
    const double wall = wall_ms();
    const enum ibv_wc_status status = write_to_h1(kPacketBytes);
    printf("\n   ibv_poll_cq: %s (%s)\n   after %.3f s of virtual time, %.1f ms on the wall.\n",
           ibv_wc_status_str(status), status == IBV_WC_RETRY_EXC_ERR ? "IBV_WC_RETRY_EXC_ERR" : "?",
           (double)(virtual_now() - before) / kPsPerSecond, wall_ms() - wall);
    check(status == IBV_WC_RETRY_EXC_ERR, "the retries are used up");
}

int main(void) {
    check(simverbs_set_topology("star:2") == 0, "simverbs_set_topology");
    struct ibv_device** devices = ibv_get_device_list(NULL);
    check(devices != NULL && devices[0] != NULL && devices[1] != NULL, "two devices");
    open_end(&h0, devices[0]);
    open_end(&h1, devices[1]);
    ibv_free_device_list(devices);
    connect_to(&h0, &h1);
    connect_to(&h1, &h0);
    check(simverbs_trace_callback(print_record, NULL) == 0, "simverbs_trace_callback");
    lose_a_packet();
    lose_the_link();
    check(simverbs_trace_callback(NULL, NULL) == 0, "simverbs_trace_callback");
    uint64_t digest = 0;
    check(simverbs_run_digest(&digest) == 0, "simverbs_run_digest");
    printf("\n   Run digest %016" PRIx64
           ": the same program and seed give the same run, each time, byte for byte.\n",
           digest);
    close_end(&h0);
    close_end(&h1);
    return EXIT_SUCCESS;
}
