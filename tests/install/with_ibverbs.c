/* A C program of verbs.h and nothing else: opens the first device, if there is one, and asks it
   what it is. Refuses nothing: without a device it only shows that the library is there. */
#include <stdio.h>
#include <stdlib.h>

#include <infiniband/verbs.h>

int main(void) {
    int count = 0;
    struct ibv_device** devices = ibv_get_device_list(&count);
    if (devices == NULL || count == 0) {
        fprintf(stderr, "no device\n");
        return EXIT_FAILURE;
    }
    struct ibv_context* context = ibv_open_device(devices[0]);
    struct ibv_device_attr attr;
    if (context == NULL || ibv_query_device(context, &attr) != 0) {
        fprintf(stderr, "no context\n");
        return EXIT_FAILURE;
    }
    printf("%s: %d port(s)\n", ibv_get_device_name(devices[0]), attr.phys_port_cnt);
    const int closed = ibv_close_device(context);
    ibv_free_device_list(devices);
    return closed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
