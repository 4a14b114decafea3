/* Two threads post on both of two connections, each under its mutex, and lock the mutexes in
 * different orders. */
#include <pthread.h>

#include "ends.h"

enum { kConnections = 2, kLength = 64, kFirst = 1024 };

static struct {
    pthread_mutex_t mutex;
    struct ibv_qp* qp;
} connections[kConnections] = {{PTHREAD_MUTEX_INITIALIZER, NULL},
                               {PTHREAD_MUTEX_INITIALIZER, NULL}};

static void write_under_lock(int connection) {
    struct ibv_send_wr wr = request_to(IBV_WR_RDMA_WRITE, &far_end, 0);
    wr.wr_id = (uint64_t)connection;
    post_on(connections[connection].qp, &near_end, &wr, 0, kLength);
}

static void write_on_both(int first, int second) {
    pthread_mutex_lock(&connections[first].mutex);
    write_under_lock(first);
    pthread_mutex_lock(&connections[second].mutex);
    write_under_lock(second);
    pthread_mutex_unlock(&connections[second].mutex);
    pthread_mutex_unlock(&connections[first].mutex);
}

/* Its turn comes when a message is there. */
static void* answer(void* unused) {
    (void)unused;
    next_success(&far_end);
#ifdef MENDED
    write_on_both(0, 1);
#else
    write_on_both(1, 0);
#endif
    return NULL;
}

int main(void) {
    pthread_t thread;
    struct ibv_qp* far_qps[kConnections];
    open_ends(kPatient);
    connections[0].qp = near_end.qp;
    connections[1].qp = another_qp(&near_end, NULL);
    far_qps[0] = far_end.qp;
    far_qps[1] = another_qp(&far_end, NULL);
    connect_pair(connections[1].qp, far_qps[1], kPatient);
    post_receive(&far_end, 0, kFirst, kLength);
    check(pthread_create(&thread, NULL, answer, NULL) == 0, "pthread_create");
    send_text("hello");
    write_on_both(0, 1);
    for (int i = 0; i < 1 + 2 * kConnections; ++i) {
        next_success(&near_end);
    }
    check(pthread_join(thread, NULL) == 0, "pthread_join");
    check(ibv_destroy_qp(connections[1].qp) == 0, "ibv_destroy_qp");
    check(ibv_destroy_qp(far_qps[1]) == 0, "ibv_destroy_qp");
    close_ends();
    return 0;
}
