/* Lesson 1: find the devices, open each, ask its port how it is, and close it again. */
#include "lab.h"

static void show(struct ibv_device* device) {
    /* YOUR TURN 1: open the device with ibv_open_device(). It gives NULL when it fails; must()
       ends the program then. */
    struct ibv_context* context = NULL;

    /* YOUR TURN 2: ask for the attributes of its first port with ibv_query_port(), and print a
       line of this form: "simverbs0 port 1: active, LID 1, MTU 4096". Ports are counted from 1.
       The LID is in port.lid; the MTU in bytes is 128 << port.active_mtu. */
    printf("%s port 1: nobody asked\n", ibv_get_device_name(device));

    /* YOUR TURN 3: close the device with ibv_close_device(). */
    (void)context;
}

int main(void) {
    int count = 0;
    struct ibv_device** list = ibv_get_device_list(&count);
    must(list != NULL, "ibv_get_device_list");
    printf("%d devices\n", count);
    /* YOUR TURN 4: call show() for each of the `count` devices of the list, not for the first
       alone. */
    show(list[0]);
    ibv_free_device_list(list);
    return EXIT_SUCCESS;
}
