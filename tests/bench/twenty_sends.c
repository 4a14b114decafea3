/* Twenty messages over one connection, which take a millisecond or less: what `simverbs explore`
 * explores where its speed is measured. */
#include "ends.h"

enum { kMessages = 20, kLength = 3000 };

int main(void) {
    open_ends(kPatient);
    for (int i = 0; i < kMessages; ++i) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        post_receive(&far_end, (uint64_t)i, 0, kLength);
        post_send(&near_end, &wr, kLength);
        next_success(&near_end);
        next_success(&far_end);
    }
    close_ends();
    return 0;
}
