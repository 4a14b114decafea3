/* A candidate leads if it changes a word from 0 to its own number. After a failure it repeats the
 * request, finds its own number there, and takes it for another leader's. */
#include "ends.h"

enum { kAttempts = 3, kWordAt = 1024, kMe = 1, kPeer = 2 };

static const char* const kAddresses[] = {[kPeer] = "192.0.2.2"}; /* of the other candidates */

/* Asks to be the leader; returns the number of the leader before that, 0 if there was none. */
static uint64_t ask(void) {
    enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
    for (int i = 0; i < kAttempts && status != IBV_WC_SUCCESS; ++i) {
        if (i > 0) {
            reconnect();
        }
        struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
        wr.wr.atomic.remote_addr = (uintptr_t)far_end.memory + kWordAt;
        wr.wr.atomic.rkey = far_end.mr->rkey;
        wr.wr.atomic.compare_add = 0;
        wr.wr.atomic.swap = kMe;
        post_send(&near_end, &wr, 8);
        status = next_of(&near_end).status;
    }
    check(status == IBV_WC_SUCCESS, "the election");
    uint64_t before = 0;
    memcpy(&before, near_end.memory, sizeof before);
    return before;
}

int main(void) {
    open_ends(kPatient);
    const uint64_t leader = ask();
#ifdef MENDED
    const int leads = leader == 0 || leader == kMe;
#else
    const int leads = leader == 0;
#endif
    if (!leads) {
        assert(leader <= kPeer && kAddresses[leader] != NULL);
        printf("follows %s\n", kAddresses[leader]);
    }
    close_ends();
    return 0;
}
