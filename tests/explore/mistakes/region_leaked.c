/* A function that fails at its second region leaves the first one registered. Its protection domain
 * cannot be deallocated any more. */
#include "ends.h"

static char sent[4096], received[4096];
static struct ibv_mr *sent_mr, *received_mr;

static int register_buffers(struct ibv_pd* pd) {
    sent_mr = ibv_reg_mr(pd, sent, sizeof sent, 0);
    if (sent_mr == NULL) {
        return 1;
    }
    received_mr = ibv_reg_mr(pd, received, sizeof received, IBV_ACCESS_LOCAL_WRITE);
    if (received_mr == NULL) {
#ifdef MENDED
        check(ibv_dereg_mr(sent_mr) == 0, "ibv_dereg_mr");
#endif
        return 1;
    }
    return 0;
}

int main(void) {
    open_end(&near_end, 0);
    struct ibv_pd* pd = ibv_alloc_pd(near_end.context);
    check(pd != NULL, "ibv_alloc_pd");
    const int failed = register_buffers(pd);
    if (!failed) {
        check(ibv_dereg_mr(sent_mr) == 0 && ibv_dereg_mr(received_mr) == 0, "ibv_dereg_mr");
    }
    const int is_busy = ibv_dealloc_pd(pd);
    assert(is_busy == 0);
    close_end(&near_end);
    return failed;
}
