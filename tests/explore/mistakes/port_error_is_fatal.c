/* A program gives up at IBV_EVENT_PORT_ERR. A link that is down for a moment fails no request: the
 * connection sends again when the port is active. */
#include <fcntl.h>

#include "ends.h"

static void look_at_events(const struct end* end) {
    struct ibv_async_event event;
    while (ibv_get_async_event(end->context, &event) == 0) {
        const enum ibv_event_type type = event.event_type;
        fprintf(stderr, "%s\n", ibv_event_type_str(type));
        ibv_ack_async_event(&event);
        check(type != IBV_EVENT_DEVICE_FATAL, "a device that works");
#ifndef MENDED
        check(type != IBV_EVENT_PORT_ERR, "an active port");
#endif
    }
}

int main(void) {
    open_ends(kPatient);
    check(fcntl(near_end.context->async_fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
    write_while(look_at_events);
    close_ends();
    return 0;
}
