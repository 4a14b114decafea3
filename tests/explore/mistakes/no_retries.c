/* retry_cnt 0: the first packet that is lost ends the connection. */
#include "ends.h"

int main(void) {
#ifdef MENDED
    open_ends(7, 7);
#else
    open_ends(0, 7);
#endif
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    wait_for(&near_end, IBV_WC_SUCCESS);
    wait_for(&far_end, IBV_WC_SUCCESS);
    close_ends();
    return 0;
}
