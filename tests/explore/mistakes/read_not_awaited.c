/* A READ is followed by a question to the peer. The answer is taken for the end of the READ, too,
 * whose response can be lost and come again later. */
#include "ends.h"

enum { kRead = 1, kAnswer = 2, kAnswerAt = 64, kReadAt = 512, kRecordAt = 1024 };

int main(void) {
    open_ends(kPatient);
    post_receive(&far_end, 0, 0, 64);
    post_receive(&near_end, kAnswer, kAnswerAt, 64);
    strcpy((char*)far_end.memory + kRecordAt, "record");

    struct ibv_send_wr read = request_to(IBV_WR_RDMA_READ, &far_end, kRecordAt);
    struct ibv_send_wr question = {.opcode = IBV_WR_SEND};
    struct ibv_send_wr answer = {.opcode = IBV_WR_SEND};
    read.wr_id = kRead;
    post_on(near_end.qp, &near_end, &read, kReadAt, 64);
    post_on(near_end.qp, &near_end, &question, 0, 8);
    next_success(&far_end);
    post_send(&far_end, &answer, 8);

    int has_read = 0;
    int has_answer = 0;
#ifdef MENDED
    while (!has_answer || !has_read) {
#else
    while (!has_answer) {
#endif
        const uint64_t id = next_success(&near_end).wr_id;
        has_read = has_read || id == kRead;
        has_answer = has_answer || id == kAnswer;
    }
    assert(strcmp((char*)near_end.memory + kReadAt, "record") == 0);
    return 0;
}
