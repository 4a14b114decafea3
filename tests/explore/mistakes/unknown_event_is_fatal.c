/* A program gives up at events that it does not know. The subnet manager may ask for registration
 * again, or add a P_Key, at any time: no connection is in danger. */
#include <fcntl.h>

#include "ends.h"

static void look_at_events(const struct end* end) {
    struct ibv_async_event event;
    while (ibv_get_async_event(end->context, &event) == 0) {
        const enum ibv_event_type type = event.event_type;
        fprintf(stderr, "%s\n", ibv_event_type_str(type));
        ibv_ack_async_event(&event);
        switch (type) {
            case IBV_EVENT_DEVICE_FATAL:
                check(0, "a device that works");
                break;
            case IBV_EVENT_QP_FATAL:
            case IBV_EVENT_PORT_ERR:
            case IBV_EVENT_PORT_ACTIVE:
                break; /* the completions tell */
            default:
#ifndef MENDED
                check(0, "an event that this program knows");
#endif
                break;
        }
    }
}

int main(void) {
    open_ends(kPatient);
    check(fcntl(near_end.context->async_fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    write_while(look_at_events);
    close_ends();
    return 0;
}
