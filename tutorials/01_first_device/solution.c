/* Lesson 1: find the devices, open each, ask its port how it is, and close it again. */
#include "lab.h"

static void show(struct ibv_device* device) {
    struct ibv_context* context = ibv_open_device(device);
    must(context != NULL, "ibv_open_device");

    struct ibv_port_attr port;
    must(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
    printf("%s port 1: %s, LID %u, MTU %d\n", ibv_get_device_name(device),
           port.state == IBV_PORT_ACTIVE ? "active" : ibv_port_state_str(port.state), port.lid,
           128 << port.active_mtu);

    must(ibv_close_device(context) == 0, "ibv_close_device");
}

int main(void) {
    int count = 0;
    struct ibv_device** list = ibv_get_device_list(&count);
    must(list != NULL, "ibv_get_device_list");
    printf("%d devices\n", count);
    for (int i = 0; i < count; ++i) {
        show(list[i]);
    }
    ibv_free_device_list(list);
    return EXIT_SUCCESS;
}
