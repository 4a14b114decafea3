/* Lesson 7: two clients share a counter in a server's memory, behind a lock made of atomics. The
 * server's program does nothing; its device keeps the order. */
#include "lab.h"

/* At the beginning of the server's memory. */
struct shared {
    uint64_t lock; /* 0: free; else the number of the client that holds it */
    uint64_t counter;
    uint64_t visits; /* of both clients, without any lock */
};
enum { ROUNDS = 3, RESULT = 0 /* where results go, in the client's memory */ };

struct client {
    struct lab_host host;
    uint64_t number; /* 1 or 2 */
    uint64_t value;  /* what it read of the counter while it held the lock */
};

static struct client first = {.number = 1}, second = {.number = 2};
static struct lab_host server;

static uint64_t place_of(size_t offset) {
    return (uintptr_t)server.memory + offset;
}

/* Posts a request with the 8 bytes at RESULT and waits for it; what they are then. */
static uint64_t carry_out(struct client* client, struct ibv_send_wr* wr) {
    struct ibv_sge sge = lab_sge(&client->host, RESULT, sizeof(uint64_t));
    struct ibv_send_wr* bad = NULL;
    wr->sg_list = &sge;
    wr->num_sge = 1;
    wr->send_flags = IBV_SEND_SIGNALED;
    must(ibv_post_send(client->host.qp, wr, &bad) == 0, "ibv_post_send");
    lab_wait_success(client->host.cq);
    uint64_t result;
    memcpy(&result, client->host.memory + RESULT, sizeof result);
    return result;
}

/* Puts `swap` there if what is there is `expected`; what was there before. */
static uint64_t compare_and_swap(struct client* client, uint64_t place, uint64_t expected,
                                 uint64_t swap) {
    /* YOUR TURN 1: opcode IBV_WR_ATOMIC_CMP_AND_SWP; wr.atomic has remote_addr, rkey,
       compare_add (what is expected) and swap. */
    (void)client;
    (void)place;
    return expected == 0 ? swap : 0;
}

/* Adds to what is there; what was there before. */
static uint64_t fetch_and_add(struct client* client, uint64_t place, uint64_t add) {
    /* YOUR TURN 2: opcode IBV_WR_ATOMIC_FETCH_AND_ADD; what is added goes into compare_add. */
    (void)client;
    (void)place;
    return add;
}

/* Tries once to take the lock: 1 if this client has it now. */
static int try_lock(struct client* client) {
    /* YOUR TURN 3: swap 0 (free) for the client's number. The answer is what was there before:
       it says whether it worked. */
    return compare_and_swap(client, place_of(offsetof(struct shared, lock)), 0, 0) == 0;
}

static void unlock(struct client* client) {
    /* YOUR TURN 4: swap the client's number for 0, and make sure (must) that it was this
       client's. */
    (void)client;
}

static void read_counter(struct client* client) {
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
    wr.wr.rdma.remote_addr = place_of(offsetof(struct shared, counter));
    wr.wr.rdma.rkey = server.mr->rkey;
    client->value = carry_out(client, &wr);
}

static void write_counter(struct client* client) {
    const uint64_t next = client->value + 1;
    memcpy(client->host.memory + RESULT, &next, sizeof next);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
    wr.wr.rdma.remote_addr = place_of(offsetof(struct shared, counter));
    wr.wr.rdma.rkey = server.mr->rkey;
    carry_out(client, &wr);
}

static void connect_to_server(struct client* client, int which) {
    lab_open(&client->host, which);
    lab_connect(&client->host, &server); /* makes a queue pair of the server, too */
}

int main(void) {
    lab_open(&server, 2);
    connect_to_server(&first, 0);
    struct ibv_qp* to_first = server.qp;
    connect_to_server(&second, 1);

    for (int round = 0; round < ROUNDS; ++round) {
        must(try_lock(&first), "the first client has the lock");
        read_counter(&first);
        /* The second comes while the first is at work. */
        const int both = try_lock(&second);
        printf("second client: %s\n", both ? "locked as well" : "has to wait");
        if (both) {
            read_counter(&second);
        }
        write_counter(&first);
        unlock(&first);
        if (!both) {
            must(try_lock(&second), "the second client has the lock");
            read_counter(&second);
        }
        write_counter(&second);
        unlock(&second);
        fetch_and_add(&first, place_of(offsetof(struct shared, visits)), 1);
        fetch_and_add(&second, place_of(offsetof(struct shared, visits)), 1);
    }

    const struct shared* shared = (const struct shared*)server.memory;
    printf("counter %lu, visits %lu, lock %lu\n", shared->counter, shared->visits, shared->lock);
    lab_close(&first.host);
    lab_close(&second.host);
    must(ibv_destroy_qp(to_first) == 0, "ibv_destroy_qp");
    lab_close(&server);
    return EXIT_SUCCESS;
}
