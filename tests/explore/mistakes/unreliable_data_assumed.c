/* On an unreliable connection data is written, and then announced by a message. That the message
 * came does not mean that the data did. */
#include "ends.h"

enum { kRecord = 64, kNoticeAt = 128 };

static uint32_t checksum(const uint8_t* bytes) {
    uint32_t sum = 1;
    for (int i = 0; i < kRecord; ++i) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

int main(void) {
    open_ends_of(IBV_QPT_UC, kPatient);
    struct ibv_send_wr data = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    struct ibv_send_wr notice = {.opcode = IBV_WR_SEND};
    memset(near_end.memory, 7, kRecord);
    const uint32_t sum = checksum(near_end.memory);
    memcpy(near_end.memory + kNoticeAt, &sum, sizeof sum);
    post_receive(&far_end, 0, kNoticeAt, 64);
    post_on(near_end.qp, &near_end, &data, 0, kRecord);
    post_on(near_end.qp, &near_end, &notice, kNoticeAt, sizeof sum);
    next_success(&near_end);
    next_success(&near_end);

    next_success(&far_end);
#ifdef MENDED
    uint32_t announced = 0;
    memcpy(&announced, far_end.memory + kNoticeAt, sizeof announced);
    check(checksum(far_end.memory) == announced, "the record that was announced");
#endif
    assert(far_end.memory[0] == 7 && far_end.memory[kRecord - 1] == 7);
    close_ends();
    return 0;
}
