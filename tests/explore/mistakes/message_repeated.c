/* A message that failed is sent again on a new connection. The receiver can have both, and does not
 * know that they are one. */
#include "ends.h"

enum { kAttempts = 3, kAmount = 10 };

struct deposit {
    uint32_t number; /* counts the deposits of the sender */
    uint32_t amount;
};

static uint32_t balance, last_number;

/* The receiver takes what has come. */
static void take_deposits(void) {
    struct ibv_wc wc;
    while (ibv_poll_cq(far_end.cq, 1, &wc) == 1) {
        struct deposit deposit;
        memcpy(&deposit, far_end.memory, sizeof deposit);
#ifdef MENDED
        if (wc.status == IBV_WC_SUCCESS && deposit.number > last_number) {
#else
        if (wc.status == IBV_WC_SUCCESS) {
#endif
            balance += deposit.amount;
            last_number = deposit.number;
        }
    }
}

int main(void) {
    open_ends(kPatient);
    const struct deposit deposit = {.number = 1, .amount = kAmount};
    memcpy(near_end.memory, &deposit, sizeof deposit);
    enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
    for (int i = 0; i < kAttempts && status != IBV_WC_SUCCESS; ++i) {
        if (i > 0) {
            reconnect();
        }
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
        post_receive(&far_end, 0, 0, 64);
        post_send(&near_end, &wr, sizeof deposit);
        status = next_of(&near_end).status;
        take_deposits();
    }
    check(status == IBV_WC_SUCCESS, "the deposit");
    assert(balance == kAmount);
    close_ends();
    return 0;
}
