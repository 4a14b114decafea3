/* After a failure everything is destroyed, also what was never created. */
#include "ends.h"

struct objects {
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_mr* mr;
};

static void destroy(struct objects* all) {
#ifdef MENDED
    check(all->mr == NULL || ibv_dereg_mr(all->mr) == 0, "ibv_dereg_mr");
    check(all->cq == NULL || ibv_destroy_cq(all->cq) == 0, "ibv_destroy_cq");
    check(all->pd == NULL || ibv_dealloc_pd(all->pd) == 0, "ibv_dealloc_pd");
#else
    check(ibv_dereg_mr(all->mr) == 0, "ibv_dereg_mr");
    check(ibv_destroy_cq(all->cq) == 0, "ibv_destroy_cq");
    check(ibv_dealloc_pd(all->pd) == 0, "ibv_dealloc_pd");
#endif
}

static int create(struct objects* all) {
    static char buffer[4096];
    all->pd = ibv_alloc_pd(near_end.context);
    if (all->pd == NULL) {
        return 1;
    }
    all->cq = ibv_create_cq(near_end.context, 16, NULL, NULL, 0);
    if (all->cq == NULL) {
        return 1;
    }
    all->mr = ibv_reg_mr(all->pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    return all->mr == NULL;
}

int main(void) {
    struct objects all = {0};
    open_end(&near_end, 0);
    const int failed = create(&all);
    destroy(&all);
    close_end(&near_end);
    return failed;
}
