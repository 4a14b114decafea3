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
    /* YOUR TURN 1: READ the NUMBERS numbers into h0's memory: opcode IBV_WR_RDMA_READ, and in
       wr.rdma the remote_addr and the rkey of the table. carry_out() does the rest. Only then
       add them up. */
    const uint64_t* numbers = (const uint64_t*)h0.memory;
    uint64_t sum = 0;
    for (int i = 0; i < NUMBERS; ++i) {
        sum += numbers[i];
    }
    return sum;
}

static void write_sum(uint64_t sum) {
    memcpy(h0.memory, &sum, sizeof sum);
    /* YOUR TURN 2: WRITE the sum to where it belongs in the table: opcode IBV_WR_RDMA_WRITE, and
       the address is offsetof(struct table, sum) bytes further. */
    (void)carry_out;
}

static void tell(void) {
    /* YOUR TURN 4: h1 does not notice a WRITE. Tell it with a WRITE of 0 bytes with immediate
       data: opcode IBV_WR_RDMA_WRITE_WITH_IMM, imm_data htonl(TICKET). It takes a receive at h1. */
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

    /* YOUR TURN 3: post the receive at h1 that the notification takes. It needs no memory:
       num_sge 0. */

    lab_join(&h0, &h1);
    const uint64_t sum = read_and_add();
    printf("h0 adds up: %lu\n", sum);
    write_sum(sum);
    tell();

    /* YOUR TURN 5: wait for h1's completion, and print the immediate data, "ticket 4711", in the
       byte order of this machine: ntohl(wc.imm_data). Then the sum stands in the table. */
    printf("h1 finds: %lu\n", table->sum);
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
