/* Lesson 5: one-sided operations. h1 keeps a table of numbers; h0 reads it, adds it up, writes the
 * sum behind it, and tells h1 that it is there. h1's program does nothing until then. */
#include <arpa/inet.h>

#include "lab.h"

enum { NUMBERS = 8, TICKET = 4711 };

/* As it lies at the beginning of h1's memory. */
struct table {
    uint64_t number[NUMBERS];
    uint64_t sum;
};

static struct lab_host h0, h1;

/* The facts that h1 told h0 beforehand: where the table is, and the key that opens it. */
static uint64_t table_address;
static uint32_t table_rkey;

/* One request of h0 with `length` bytes at the beginning of its memory; waits for its end. */
static void carry_out(struct ibv_send_wr* wr, uint32_t length) {
    struct ibv_sge sge = lab_sge(&h0, 0, length);
    struct ibv_send_wr* bad = NULL;
    wr->sg_list = &sge;
    wr->num_sge = length > 0 ? 1 : 0; /* a segment of 0 bytes would be superfluous */
    wr->send_flags = IBV_SEND_SIGNALED;
    must(ibv_post_send(h0.qp, wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(h0.cq);
}

static uint64_t read_and_add(void) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                             .wr.rdma = {.remote_addr = table_address, .rkey = table_rkey}};
    carry_out(&wr, NUMBERS * sizeof(uint64_t));
    const uint64_t* numbers = (const uint64_t*)h0.memory;
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS; ++i) {
        sum += numbers[i];
    }
    return sum;
}

static void write_sum(uint64_t sum) {
    memcpy(h0.memory, &sum, sizeof sum);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {.remote_addr = table_address + offsetof(struct table, sum),
                                         .rkey = table_rkey}};
    carry_out(&wr, sizeof sum);
}

static void tell(void) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                             .imm_data = htonl(TICKET),
                             .wr.rdma = {.remote_addr = table_address, .rkey = table_rkey}};
    carry_out(&wr, 0);
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_prepare(&h0, &h1);
    struct table* table = (struct table*)h1.memory;
    for (int i = 0; i < NUMBERS; ++i) {
        table->number[i] = (uint64_t)(i + 1) * 100;
    }
    table_address = (uintptr_t)table;
    table_rkey = h1.mr->rkey;

    struct ibv_recv_wr receive = {.wr_id = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(h1.qp, &receive, &bad) == 0, "ibv_post_recv");

    lab_join(&h0, &h1);
    const uint64_t sum = read_and_add();
    printf("h0 adds up: %lu\n", sum);
    write_sum(sum);
    tell();

    const struct ibv_wc wc = lab_wait_success(h1.cq);
    printf("ticket %u\n", ntohl(wc.imm_data));
    printf("h1 finds: %lu\n", table->sum);
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
