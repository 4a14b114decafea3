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
    /* YOUR TURN 3: fill in what the device needs to find the local bytes (sge.lkey) and the
       remote ones (wr.wr.rdma.remote_addr and wr.wr.rdma.rkey). */
    struct ibv_sge sge = {.addr = (uintptr_t)local->addr, .length = sizeof letter};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    (void)remote_addr;
    (void)rkey;
    struct ibv_send_wr* bad = NULL;
    must(ibv_post_send(h0.qp, &wr, &bad) == 0, "ibv_post_send");
    return lab_wait(h0.cq).status;
}

int main(void) {
    lab_open(&h0, 0);
    lab_open(&h1, 1);
    lab_connect(&h0, &h1);

    /* YOUR TURN 1: register `letter` with h0's protection domain (h0.pd). h0's device only reads
       it, to send it; that needs no right at all: 0. */
    struct ibv_mr* source = h0.mr;

    /* YOUR TURN 2: register `mailbox` with h1's protection domain. A remote host will write into
       it, which needs two rights, and shall be able to do nothing else. */
    struct ibv_mr* target = h1.mr;

    enum ibv_wc_status status =
        attempt(IBV_WR_RDMA_WRITE, source, (uintptr_t)target->addr, target->rkey);
    printf("write: %s\n", ibv_wc_status_str(status));
    printf("mailbox: \"%s\"\n", mailbox);

    /* A stranger who tries to read what is in the mailbox. This one has to fail. */
    status = attempt(IBV_WR_RDMA_READ, h0.mr, (uintptr_t)target->addr, target->rkey);
    printf("read: %s\n", ibv_wc_status_str(status));

    /* YOUR TURN 4: end both regions with ibv_dereg_mr(): from then on their keys open nothing. */
    lab_close(&h0);
    lab_close(&h1);
    return EXIT_SUCCESS;
}
