/* Two threads answer requests, each on a connection of its own. The main thread takes the first
 * reply for that of the first request. */
#include <pthread.h>

#include "ends.h"

enum { kServers = 2, kLength = 8, kRequests = 0, kReplies = 1024 };

static struct end other_end;
static struct end* const servers[kServers] = {&far_end, &other_end};

static void* answer(void* argument) {
    struct end* const server = argument;
    struct ibv_send_wr reply = {.opcode = IBV_WR_SEND};
    next_success(server);
    post_on(server->qp, server, &reply, kRequests, kLength);
    next_success(server);
    return NULL;
}

int main(void) {
    pthread_t threads[kServers];
    struct ibv_qp* qps[kServers];
    open_end(&near_end, 0);
    create_qp(&near_end, IBV_QPT_RC, NULL);
    qps[0] = near_end.qp;
    qps[1] = another_qp(&near_end, NULL);
    for (uint32_t i = 0; i < kServers; ++i) {
        open_end(servers[i], 1);
        create_qp(servers[i], IBV_QPT_RC, NULL);
        bring_up(qps[i], &near_end, servers[i], servers[i]->qp->qp_num, kPatient);
        bring_up(servers[i]->qp, servers[i], &near_end, qps[i]->qp_num, kPatient);
        post_receive(servers[i], 0, kRequests, kLength);
        receive_on(qps[i], &near_end, i, kReplies + i * kLength, kLength);
        check(pthread_create(&threads[i], NULL, answer, servers[i]) == 0, "pthread_create");
    }
    for (uint32_t i = 0; i < kServers; ++i) {
        struct ibv_send_wr request = {.wr_id = i, .opcode = IBV_WR_SEND};
        near_end.memory[kRequests + i * kLength] = (uint8_t)(i + 1);
        post_on(qps[i], &near_end, &request, kRequests + i * kLength, kLength);
    }
    for (uint32_t replies = 0; replies < kServers;) {
        const struct ibv_wc wc = next_success(&near_end);
        if (wc.opcode == IBV_WC_RECV) {
#ifdef MENDED
            const uint64_t request = wc.wr_id;
#else
            const uint64_t request = replies;
#endif
            assert(near_end.memory[kReplies + request * kLength] == request + 1);
            ++replies;
        }
    }
    for (uint32_t i = 0; i < kServers; ++i) {
        check(pthread_join(threads[i], NULL) == 0, "pthread_join");
        close_end(servers[i]);
    }
    check(ibv_destroy_qp(qps[1]) == 0, "ibv_destroy_qp");
    close_end(&near_end);
    return 0;
}
