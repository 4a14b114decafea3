/* rnr_retry 0: a receive that is posted late ends the connection. */
#include "ends.h"

int main(void) {
#ifdef MENDED
    open_ends(7, 7);
#else
    open_ends(7, 0);
#endif
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    wait_for(&near_end, IBV_WC_SUCCESS);
    wait_for(&far_end, IBV_WC_SUCCESS);
    close_ends();
    return 0;
}
