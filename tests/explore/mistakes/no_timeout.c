/* timeout 0 means to wait for an acknowledgement without end: a lost packet is never sent again. */
#include "ends.h"

int main(void) {
    struct connection how = kPatient;
#ifndef MENDED
    how.timeout = 0;
#endif
    open_ends(how);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    next_success(&near_end);
    next_success(&far_end);
    close_ends();
    return 0;
}
