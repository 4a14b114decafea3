/* Two atomics on a word of the peer: FETCH_AND_ADD answers what was there before, and
   CMP_AND_SWP replaces it only where it is what was expected. */
#include "end.h"

static struct end a, b;

static uint64_t atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap) {
    struct ibv_send_wr wr = {.opcode = opcode};
    wr.wr.atomic.remote_addr = (uintptr_t)b.memory;
    wr.wr.atomic.rkey = b.mr->rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    post_send(&a, &wr, sizeof(uint64_t));
    wait_for(&a, IBV_WC_SUCCESS);
    uint64_t before = 0;
    memcpy(&before, a.memory, sizeof before);
    return before;
}

static uint64_t word_of_b(void) {
    uint64_t word = 0;
    memcpy(&word, b.memory, sizeof word);
    return word;
}

int main(void) {
    open_end(&a, 0);
    open_end(&b, 1);
    create_qp(&a, IBV_QPT_RC, NULL);
    create_qp(&b, IBV_QPT_RC, NULL);
    connect_ends(&a, &b);

    check(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 40, 0) == 0, "the word was 0");
    check(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0) == 40, "then 40");
    check(word_of_b() == 42, "40 and 2");
    check(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 41, 7) == 42, "a wrong guess is told the value");
    check(word_of_b() == 42, "and changes nothing");
    check(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7) == 42, "a right one too");
    check(word_of_b() == 7, "and swaps");

    close_end(&a);
    close_end(&b);
    puts("FETCH_AND_ADD and CMP_AND_SWP");
    return EXIT_SUCCESS;
}
