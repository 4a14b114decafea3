/* Asks for rdma_cm where it cannot be reached; 0 if it is refused. */
#include <rdma/rdma_cma.h>
#include <stddef.h>

int main(void) {
    return rdma_create_event_channel() == NULL ? 0 : 1;
}
