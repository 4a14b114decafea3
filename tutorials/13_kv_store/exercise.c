/* Lesson 13: a key-value store. The server is memory and a device; the client does all the work
 * with READ and WRITE, on a link that loses packets, and that once goes away for longer than any
 * retry. */
#include <simverbs/simverbs.h>

#include "lab.h"

enum { KEYS = 16, VALUE = 40, ATTEMPTS = 5 };

/* One entry, as it lies in the server's memory: at key * sizeof(struct entry). */
struct entry {
    uint64_t version; /* how often it was written */
    uint64_t check;   /* check_of() the rest: tells a whole entry from a half written one */
    uint64_t key;
    char value[VALUE];
};

static struct lab_host client, server;
static int reconnections, torn;

static uint64_t check_of(const struct entry* entry) {
    uint64_t sum = 14695981039346656037u ^ entry->version;
    sum = (sum ^ entry->key) * 1099511628211u;
    for (int i = 0; i < VALUE; ++i) {
        sum = (sum ^ (uint8_t)entry->value[i]) * 1099511628211u;
    }
    return sum;
}

/* ---- the world: not yours -------------------------------------------------------------------- */

/* From here on a tenth of all packets is lost, in either direction. */
static void make_link_bad(void) {
    static const char* const senders[2] = {"h0", "h1"};
    static const char* const links[2] = {"h0-s0", "h1-s0"};
    for (int i = 0; i < 2; ++i) {
        struct simverbs_fault fault;
        simverbs_fault_init(&fault);
        fault.action = SIMVERBS_FAULT_DROP;
        fault.match.link = links[i];
        fault.match.from = senders[i];
        fault.chance = 1;
        fault.chance_of = 10;
        must(simverbs_inject(&fault, NULL) == 0, simverbs_last_error());
    }
}

/* The link goes away now, and is back in a second: more than eight tries of 67 ms. */
static void cut_link_for_a_second(void) {
    struct simverbs_fault fault;
    simverbs_fault_init(&fault);
    fault.action = SIMVERBS_FAULT_LINK_DOWN;
    fault.target.link = "h0-s0";
    fault.with.duration_ps = 1000LL * 1000 * 1000 * 1000;
    must(simverbs_inject(&fault, NULL) == 0, simverbs_last_error());
}

/* Another client of this server is in the middle of writing `key`; it is done at the second call.
 */
static void neighbour_writes(uint64_t key, int is_done) {
    struct entry* entry = (struct entry*)server.memory + key;
    strcpy(entry->value, is_done ? "neighbour's new words" : "neighbour's");
    entry->key = key;
    entry->version = 7;
    entry->check = is_done ? check_of(entry) : 0;
}

/* ---- the connection -------------------------------------------------------------------------- */

/* A queue pair that broke, made ready once more: both ends of it. */
static void reconnect(void) {
    ++reconnections;
    must(simverbs_advance_ps(1000LL * 1000 * 1000 * 1000) == 0,
         "a second"); /* until it may be back */
    /* YOUR TURN 2: both ends to IBV_QPS_RESET (ibv_modify_qp with IBV_QP_STATE; from any state),
       then lab_to_init() for both, and lab_join(&client, &server). */
}

/* A READ or WRITE between the beginning of the client's memory and the entry of `key`. */
static enum ibv_wc_status try_once(enum ibv_wr_opcode opcode, uint64_t key) {
    struct ibv_sge sge = lab_sge(&client, 0, sizeof(struct entry));
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.rkey = server.mr->rkey}};
    wr.wr.rdma.remote_addr = (uintptr_t)server.memory + key * sizeof(struct entry);
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(client.qp, &wr, &bad) == 0, "ibv_post_send");
    return lab_wait(client.cq).status;
}

static void carry_out(enum ibv_wr_opcode opcode, uint64_t key) {
    /* YOUR TURN 1: try_once(); if that is no success, the queue pair is in ERR: reconnect() and
       try again, ATTEMPTS times at most. Is it safe to do a READ twice? A WRITE of a whole
       entry? */
    must(try_once(opcode, key) == IBV_WC_SUCCESS, "an operation at the first try");
    (void)reconnect;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void put(uint64_t key, const char* value, uint64_t version) {
    struct entry* entry = (struct entry*)client.memory;
    memset(entry, 0, sizeof *entry);
    /* YOUR TURN 3: fill in key, version and value (strncpy, VALUE - 1 bytes), and last the check
       over all of it; then WRITE it. */
    (void)key;
    (void)value;
    (void)version;
    (void)carry_out;
}

/* The value, in the client's memory; NULL if the key was never written. */
static const char* get(uint64_t key) {
    struct entry* entry = (struct entry*)client.memory;
    for (int i = 0; i < ATTEMPTS; ++i) {
        /* YOUR TURN 4: READ the entry. Was it ever written (version 0)? NULL. Is it whole (its
           check is right)? Then its value. If not, somebody is writing it: ++torn and look
           again. */
        (void)check_of;
        return entry->value;
        neighbour_writes(key, 1);
    }
    return NULL;
}

int main(void) {
    lab_open(&client, 0);
    lab_open(&server, 1);
    lab_connect(&client, &server);
    make_link_bad();

    char words[VALUE];
    for (uint64_t key = 0; key < KEYS - 2; ++key) {
        snprintf(words, sizeof words, "value of %d", (int)key);
        put(key, words, 1);
    }
    cut_link_for_a_second();
    put(3, "written across the gap", 2);

    int right = 0;
    for (uint64_t key = 0; key < KEYS - 2; ++key) {
        snprintf(words, sizeof words, "value of %d", (int)key);
        const char* found = get(key);
        right += found != NULL && strcmp(found, key == 3 ? "written across the gap" : words) == 0;
    }
    printf("%d of %d values right\n", right, KEYS - 2);

    neighbour_writes(KEYS - 2, 0);
    const char* found = get(KEYS - 2);
    printf("neighbour: %s\n", found == NULL ? "nothing" : found);
    found = get(KEYS - 1);
    printf("never written: %s\n", found == NULL ? "nothing" : "something");
    printf("%d reconnections, %d torn reads\n", reconnections, torn);

    lab_close(&client);
    lab_close(&server);
    return EXIT_SUCCESS;
}
