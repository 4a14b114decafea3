/* All messages have been acknowledged, so one poll is to return all of their completions. */
#include "ends.h"

enum { kMessages = 3, kLength = 64 };

int main(void) {
    struct ibv_wc completions[kMessages];
    int found = 0;
    open_ends(kPatient);
    for (int i = 0; i < kMessages; ++i) {
        post_receive(&far_end, (uint64_t)i, (uint32_t)(i * kLength), kLength);
    }
    for (int i = 0; i < kMessages; ++i) {
        send_text("hello");
        next_success(&near_end);
    }
#ifdef MENDED
    for (int polls = 0; found < kMessages && polls < kEmptyPolls; ++polls) {
        const int more = ibv_poll_cq(far_end.cq, kMessages - found, completions + found);
        check(more >= 0, "ibv_poll_cq");
        found += more;
    }
    check(found == kMessages, "all completions");
#else
    found = ibv_poll_cq(far_end.cq, kMessages, completions);
    assert(found == kMessages);
#endif
    for (int i = 0; i < kMessages; ++i) {
        check(completions[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(completions[i].status));
    }
    close_ends();
    return 0;
}
