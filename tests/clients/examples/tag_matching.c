/* The adapter matches messages with receives by their tags, as MPI asks for: an expected message,
   an unexpected one that software matches, a rendezvous that the adapter carries out, and a receive
   that is cancelled. */
#include <endian.h>

#include <infiniband/tm_types.h>

#include "end.h"

enum {
    kTags = 8,
    kMessageAt = 0,       /* of the sender: header and data of what it sends */
    kLongAt = 1024,       /* of the sender: the data of a rendezvous */
    kFinAt = 3072,        /* of the sender */
    kTaggedAt = 0,        /* of the receiver: where messages with a tag belong */
    kUnexpectedAt = 3072, /* of the receiver: where all others land, header first */
    kLongBytes = 2000
};

static struct end sender, receiver;
static struct ibv_cq_ex* completions; /* of the tags; of the receiver */
static struct ibv_srq* tags;
static uint32_t unexpected; /* messages so far */

struct arrival {
    uint64_t id;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    unsigned int flags;
    uint32_t bytes;
    struct ibv_wc_tm_info info;
};

static void create_tags(void) {
    struct ibv_device_attr_ex device;
    check(ibv_query_device_ex(receiver.context, NULL, &device) == 0, "ibv_query_device_ex");
    check(device.tm_caps.max_num_tags >= kTags && (device.tm_caps.flags & IBV_TM_CAP_RC) != 0,
          "a device that matches tags");
    struct ibv_cq_init_attr_ex wanted = {
        .cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_TM_INFO};
    completions = ibv_create_cq_ex(receiver.context, &wanted);
    check(completions != NULL, "ibv_create_cq_ex");
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 4, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                        .srq_type = IBV_SRQT_TM,
                                        .pd = receiver.pd,
                                        .cq = ibv_cq_ex_to_cq(completions),
                                        .tm_cap = {.max_num_tags = kTags, .max_ops = 2 * kTags}};
    tags = ibv_create_srq_ex(receiver.context, &init);
    check(tags != NULL, "ibv_create_srq_ex");
}

static void post_unexpected(uint64_t id) {
    struct ibv_sge sge = range(&receiver, kUnexpectedAt, 512);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    check(ibv_post_srq_recv(tags, &wr, &bad) == 0, "ibv_post_srq_recv");
}

/* Each operation says how many unexpected messages this side has seen: a tag is not used before the
   adapter hears that none of those can be for it. */
static uint32_t add_tag(uint64_t id, uint64_t tag, uint64_t mask) {
    struct ibv_sge sge = range(&receiver, kTaggedAt, kLongBytes);
    struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC};
    op.tm.unexpected_cnt = unexpected;
    op.tm.add.recv_wr_id = id;
    op.tm.add.sg_list = &sge;
    op.tm.add.num_sge = 1;
    op.tm.add.tag = tag;
    op.tm.add.mask = mask;
    struct ibv_ops_wr* bad = NULL;
    check(ibv_post_srq_ops(tags, &op, &bad) == 0, "IBV_WR_TAG_ADD");
    return op.tm.handle;
}

static void remove_tag(uint64_t id, uint32_t handle) {
    struct ibv_ops_wr op = {.wr_id = id, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED};
    op.tm.handle = handle;
    struct ibv_ops_wr* bad = NULL;
    check(ibv_post_srq_ops(tags, &op, &bad) == 0, "IBV_WR_TAG_DEL");
}

static struct arrival wait_for_arrival(void) {
    struct ibv_poll_cq_attr attr = {0};
    int error = ENOENT;
    for (int i = 0; i < kPolls && error == ENOENT; ++i) {
        error = ibv_start_poll(completions, &attr);
    }
    check(error == 0, "a completion of the tags");
    struct arrival arrival = {.id = completions->wr_id,
                              .status = completions->status,
                              .opcode = ibv_wc_read_opcode(completions),
                              .flags = ibv_wc_read_wc_flags(completions),
                              .bytes = ibv_wc_read_byte_len(completions)};
    ibv_wc_read_tm_info(completions, &arrival.info);
    ibv_end_poll(completions);
    return arrival;
}

static struct ibv_tmh* begin_message(enum ibv_tmh_op opcode, uint64_t tag, uint32_t context) {
    struct ibv_tmh* header = (struct ibv_tmh*)(sender.memory + kMessageAt);
    *header = (struct ibv_tmh){.opcode = opcode, .app_ctx = htobe32(context), .tag = htobe64(tag)};
    return header;
}

static void send_message(uint32_t bytes) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post_send(&sender, &wr, bytes);
    wait_for(&sender, IBV_WC_SUCCESS);
}

static void send_eager(uint64_t tag, const char* text) {
    struct ibv_tmh* header = begin_message(IBV_TMH_EAGER, tag, 0);
    strcpy((char*)(header + 1), text);
    send_message((uint32_t)(sizeof *header + strlen(text) + 1));
}

static void receive_expected(void) {
    add_tag(1, 0x500, 0xF00); /* any tag of this "communicator" */
    send_eager(0x501, "expected");
    const struct arrival arrival = wait_for_arrival();
    check(arrival.id == 1 && arrival.opcode == IBV_WC_TM_RECV, "the receive of the tag");
    check(arrival.flags == (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID), "matched, and complete");
    check(arrival.info.tag == 0x501, "the completion says which tag it was");
    check(strcmp((char*)receiver.memory + kTaggedAt, "expected") == 0, "data without a header");
}

static void receive_unexpected(void) {
    post_unexpected(2);
    send_eager(0x601, "unexpected");
    const struct arrival arrival = wait_for_arrival();
    check(arrival.id == 2 && arrival.opcode == IBV_WC_TM_RECV && arrival.flags == 0, "no match");
    const struct ibv_tmh* header = (const struct ibv_tmh*)(receiver.memory + kUnexpectedAt);
    check(be64toh(header->tag) == 0x601, "the header is there for software to match");
    check(strcmp((const char*)(header + 1), "unexpected") == 0, "and the data behind it");
    ++unexpected;
}

static void receive_rendezvous(void) {
    add_tag(3, 0x701, ~(uint64_t)0);
    post_receive(&sender, 9, kFinAt, 64);
    for (int i = 0; i < kLongBytes; ++i) {
        sender.memory[kLongAt + i] = (uint8_t)(i * 13);
    }
    struct ibv_tmh* header = begin_message(IBV_TMH_RNDV, 0x701, 42);
    struct ibv_rvh* where = (struct ibv_rvh*)(header + 1);
    *where = (struct ibv_rvh){.va = htobe64((uintptr_t)sender.memory + kLongAt),
                              .rkey = htobe32(sender.mr->rkey),
                              .len = htobe32(kLongBytes)};
    send_message(sizeof *header + sizeof *where);
    const struct arrival matched = wait_for_arrival();
    check(matched.id == 3 && matched.flags == IBV_WC_TM_MATCH, "matched first");
    const struct arrival complete = wait_for_arrival();
    check(complete.id == 3 && complete.flags == IBV_WC_TM_DATA_VALID, "then complete");
    check(complete.bytes == kLongBytes, "all of it");
    check(memcmp(receiver.memory + kTaggedAt, sender.memory + kLongAt, kLongBytes) == 0, "data");
    const struct ibv_wc wc = wait_for(&sender, IBV_WC_SUCCESS);
    const struct ibv_tmh* fin = (const struct ibv_tmh*)(sender.memory + kFinAt);
    check(wc.wr_id == 9 && fin->opcode == IBV_TMH_FIN, "the adapter tells the sender");
    check(be32toh(fin->app_ctx) == 42, "which rendezvous it was");
}

static void cancel_receive(void) {
    const uint32_t handle = add_tag(4, 0x801, ~(uint64_t)0);
    remove_tag(5, handle);
    const struct arrival removed = wait_for_arrival();
    check(removed.id == 5 && removed.status == IBV_WC_SUCCESS, "the tag is gone");
    const uint32_t taken = add_tag(6, 0x802, ~(uint64_t)0);
    send_eager(0x802, "too late");
    remove_tag(7, taken);
    check(wait_for_arrival().id == 6, "the message came first");
    check(wait_for_arrival().status == IBV_WC_TM_ERR, "so there is nothing to cancel");
}

int main(void) {
    open_end(&sender, 0);
    open_end(&receiver, 1);
    create_tags();
    create_qp(&sender, IBV_QPT_RC, NULL);
    create_qp(&receiver, IBV_QPT_RC, tags);
    connect_ends(&sender, &receiver);
    receive_expected();
    receive_unexpected();
    receive_rendezvous();
    cancel_receive();
    check(ibv_destroy_qp(receiver.qp) == 0, "ibv_destroy_qp");
    receiver.qp = NULL;
    check(ibv_destroy_srq(tags) == 0, "ibv_destroy_srq");
    check(ibv_destroy_cq(ibv_cq_ex_to_cq(completions)) == 0, "ibv_destroy_cq");
    close_end(&sender);
    close_end(&receiver);
    puts("an expected message, an unexpected one, a rendezvous, and a receive that was cancelled");
    return EXIT_SUCCESS;
}
