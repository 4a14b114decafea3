/* A thread posts the receives, and the main thread sends before it knows that they are there. */
#include <pthread.h>

#include "ends.h"

enum { kMessages = 4, kLength = 32 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_ready = 0;

static void* receive(void* unused) {
    (void)unused;
    for (int i = 0; i < kMessages; ++i) {
        post_receive(&far_end, (uint64_t)i, (uint32_t)(i * kLength), kLength);
    }
    pthread_mutex_lock(&mutex);
    is_ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < kMessages; ++i) {
        next_success(&far_end);
    }
    return NULL;
}

int main(void) {
    pthread_t receiver;
#ifdef MENDED
    open_ends(kPatient);
#else
    /* Each message has its receive: nothing to wait for. */
    static const struct connection kNeverTwice = {.timeout = 14, .retries = 7, .rnr_retries = 0};
    open_ends(kNeverTwice);
#endif
    check(pthread_create(&receiver, NULL, receive, NULL) == 0, "pthread_create");
#ifdef MENDED
    pthread_mutex_lock(&mutex);
    while (!is_ready) {
        pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
#endif
    for (int i = 0; i < kMessages; ++i) {
        send_text("hello");
        next_success(&near_end);
    }
    check(pthread_join(receiver, NULL) == 0, "pthread_join");
    close_ends();
    return 0;
}
