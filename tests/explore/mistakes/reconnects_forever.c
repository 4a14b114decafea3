/* After each failure the program connects anew and tries again, however often that has failed. */
#include "ends.h"

enum { kAttempts = 3 };

int main(void) {
    open_ends(kPatient);
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    int attempts = 1;
    for (post_send(&near_end, &wr, 8); next_of(&near_end).status != IBV_WC_SUCCESS; ++attempts) {
#ifdef MENDED
        check(attempts < kAttempts, "a connection that works");
#endif
        reconnect();
        post_send(&near_end, &wr, 8);
    }
    printf("%d of %d attempts\n", attempts, kAttempts);
    close_ends();
    return 0;
}
