/* A thread that waits for completions ends after a failure and tells nobody. The main thread waits
 * for its result. */
#include <pthread.h>

#include "ends.h"

enum { kPending, kReceived, kFailed };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int state = kPending;

static void tell(int now) {
    pthread_mutex_lock(&mutex);
    state = now;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void* work(void* end) {
    const struct ibv_wc wc = next_of(end);
    if (wc.status == IBV_WC_SUCCESS) {
        tell(kReceived);
        return NULL;
    }
    fprintf(stderr, "failed: %s\n", ibv_wc_status_str(wc.status));
#ifdef MENDED
    tell(kFailed);
#endif
    return NULL;
}

int main(void) {
    pthread_t worker;
    open_ends(kPatient);
    post_receive(&far_end, 0, 0, 64);
    send_text("hello");
    check(pthread_create(&worker, NULL, work, &far_end) == 0, "pthread_create");
    pthread_mutex_lock(&mutex);
    while (state == kPending) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    check(pthread_join(worker, NULL) == 0, "pthread_join");
    close_ends();
    return state == kReceived ? 0 : 1;
}
