/* Lesson 4: messages. h0 sends four lines of a poem, each from a buffer of its own; h1 has a
 * receive for each, and prints what came. */
#include "lab.h"

enum { LINES = 4, SLOT = 128 /* bytes of memory for one line, at either end */ };

static const char* const poem[LINES] = {"Posted and forgotten,", "a buffer waits for words,",
                                        "until a device far away", "completes it."};
static struct lab_host h0, h1;

/* A receive for line `i`, whose wr_id is i. */
static void post_receive(int i) {
    struct ibv_sge sge = lab_sge(&h1, (uint32_t)(i * SLOT), SLOT);
    struct ibv_recv_wr wr = {.wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad = NULL;
    must(ibv_post_recv(h1.qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* Sends line `i`, without its terminating 0. */
static void post_send(int i) {
    char* slot = h0.memory + i * SLOT;
    strcpy(slot, poem[i]);
    struct ibv_sge sge = lab_sge(&h0, (uint32_t)(i * SLOT), (uint32_t)strlen(slot));
    struct ibv_send_wr wr = {.wr_id = (uint64_t)i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
}

/* The next completion of a queue. */
static struct ibv_wc next(struct ibv_cq* cq) {
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    int found = 0;
    for (int tries = 0; found == 0 && tries < LAB_POLLS; ++tries) {
        found = ibv_poll_cq(cq, 1, &wc);
    }
    must(found == 1, "waiting for a completion that does not come");
    must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    return wc;
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_prepare(&h0, &h1);

    for (int i = 0; i < LINES; ++i) {
        post_receive(i);
    }

    lab_join(&h0, &h1);

    for (int i = 0; i < LINES; ++i) {
        post_send(i);
    }

    for (int i = 0; i < LINES; ++i) {
        const struct ibv_wc wc = next(h1.cq);
        printf("line %d, %u bytes: %.*s\n", (int)wc.wr_id, wc.byte_len, (int)wc.byte_len,
               h1.memory + wc.wr_id * SLOT);
    }

    for (int i = 0; i < LINES; ++i) {
        next(h0.cq);
    }

    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
