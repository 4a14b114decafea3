/* A sender sleeps for a moment instead of waiting for the completion of its last message, and then
 * destroys its queue pair. A message that has to be sent again is lost. */
#include <time.h>

#include "ends.h"

int main(void) {
    open_ends(kPatient);
    post_receive(&far_end, 0, 0, 64);
    send_text("goodbye");
#ifdef MENDED
    next_success(&near_end);
#else
    const struct timespec moment = {.tv_nsec = 2000000};
    check(nanosleep(&moment, NULL) == 0, "nanosleep");
#endif
    close_end(&near_end);
    next_success(&far_end);
    assert(strcmp((char*)far_end.memory, "goodbye") == 0);
    close_end(&far_end);
    return 0;
}
