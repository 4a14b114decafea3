/* Lesson 2: register memory, so that a device may touch it, and give away no more rights than it
 * takes. The connection over which h0 writes into h1's memory is made for you; lesson 3 is about
 * it. */
#include "lab.h"

static struct lab_host h0, h1;
static char letter[64] = "a letter that h0 wrote";
static char mailbox[64]; /* of h1 */

/* Tries an RDMA operation from `local` at h0 to the place that `remote_addr` and `rkey` name. */
static enum ibv_wc_status attempt(enum ibv_wr_opcode opcode, const struct ibv_mr* local,
                                  uint64_t remote_addr, uint32_t rkey) {
    struct ibv_sge sge = {
        .addr = (uintptr_t)local->addr, .length = sizeof letter, .lkey = local->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = remote_addr, .rkey = rkey}};
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
    return lab_wait(h0.cq).status;
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_connect(&h0, &h1);

    struct ibv_mr* source = ibv_reg_mr(h0.pd, letter, sizeof letter, 0);
    must(source != NULL, "ibv_reg_mr of the letter");

    struct ibv_mr* target = ibv_reg_mr(h1.pd, mailbox, sizeof mailbox,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    must(target != NULL, "ibv_reg_mr of the mailbox");

    enum ibv_wc_status status =
        attempt(IBV_WR_RDMA_WRITE, source, (uintptr_t)target->addr, target->rkey);
    printf("write: %s\n", ibv_wc_status_str(status));
    printf("mailbox: \"%s\"\n", mailbox);

    /* A stranger who tries to read what is in the mailbox. This one has to fail. */
    status = attempt(IBV_WR_RDMA_READ, h0.mr, (uintptr_t)target->addr, target->rkey);
    printf("read: %s\n", ibv_wc_status_str(status));

    must(ibv_dereg_mr(source) == 0, "ibv_dereg_mr");
    must(ibv_dereg_mr(target) == 0, "ibv_dereg_mr");
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
