/* All retries are used up within half a millisecond, before a link that was down is up again. */
#include "ends.h"

int main(void) {
    struct connection how = kPatient;
#ifndef MENDED
    how.timeout = 4; /* 66 us */
#endif
    open_ends(how);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    next_success(&near_end);
    next_success(&far_end);
    close_ends();
    return 0;
}
