/* Lesson 4: messages. h0 sends four lines of a poem, each from a buffer of its own; h1 has a
 * receive for each, and prints what came. */
#include "lab.h"

enum { LINES = 4, SLOT = 128 /* bytes of memory for one line, at either end */ };

static const char* const poem[LINES] = {"Posted and forgotten,", "a buffer waits for words,",
                                        "until a device far away", "completes it."};
static struct lab_host h0, h1;

/* A receive for line `i`, whose wr_id is i. */
static void post_receive(int i) {
    /* YOUR TURN 1: post a receive to h1's queue pair for the SLOT bytes at offset i * SLOT of
       its memory: lab_sge() makes the element; wr_id is i, so that the completion tells which
       one it was. */
    (void)i;
}

/* Sends line `i`, without its terminating 0. */
static void post_send(int i) {
    char* slot = h0.memory + i * SLOT;
    strcpy(slot, poem[i]);
    /* YOUR TURN 2: post a send of the strlen(slot) bytes at offset i * SLOT to h0's queue pair:
       opcode IBV_WR_SEND, send_flags IBV_SEND_SIGNALED (else it completes without telling you),
       wr_id i. */
    (void)slot;
}

/* The next completion of a queue. */
static struct ibv_wc next(struct ibv_cq* cq) {
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    /* YOUR TURN 3: call ibv_poll_cq(cq, 1, &wc) until it returns 1; a negative number is an
       error. Give up after LAB_POLLS tries, so that a mistake elsewhere does not make your
       program hang. Then look at wc.status: anything but IBV_WC_SUCCESS ends the program. */
    (void)cq;
    return wc;
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_prepare(&h0, &h1);

    /* YOUR TURN 4: post the receives of all lines here, while the queue pairs are in INIT; and
       the sends below, once they are connected. */
    (void)post_receive;
    (void)post_send;

    lab_join(&h0, &h1);

    /* YOUR TURN 4, second half. */

    /* YOUR TURN 5: wait for the LINES completions of h1, and print for each which line it is
       (wr_id), how many bytes came (byte_len) and the bytes: "line 0, 21 bytes: Posted and
       forgotten,". The message has no terminating 0: printf("%.*s", length, bytes) prints so
       many. */
    (void)next;

    /* YOUR TURN 6: wait for the LINES completions of h0. Until then its buffers belong to the
       device. */

    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
