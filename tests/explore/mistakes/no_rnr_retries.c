/* rnr_retry 0: a receive that is posted late ends the connection. */
#include "ends.h"

int main(void) {
    struct connection how = kPatient;
#ifndef MENDED
    how.rnr_retries = 0;
#endif
    open_ends(how);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    next_success(&near_end);
    next_success(&far_end);
    close_ends();
    return 0;
}
