/* A program whose argument says what becomes of it where something fails: it ends with status 0 in
 * any case but one. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "ends.h"

static const char* behaviour = "";

static int does(const char* what) {
    return strcmp(behaviour, what) == 0;
}

/* Registers memory for one more message, or does without. */
static void register_more(void) {
    static char more[4096];
    struct ibv_pd* const pd = ibv_alloc_pd(near_end.context);
    if (pd == NULL) {
        return;
    }
    struct ibv_mr* const mr = ibv_reg_mr(pd, more, sizeof more, 0);
    if (mr == NULL && does("leaks")) {
        return;
    }
    if (mr == NULL && does("gives_up")) {
        exit(EXIT_FAILURE);
    }
    if (mr == NULL && does("destroys_twice")) {
        ibv_dealloc_pd(pd);
    }
    if (mr != NULL) {
        check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
    }
    if (!does("always_leaks")) {
        ibv_dealloc_pd(pd);
    }
}

static void* end_at_once(void* unused) {
    return unused;
}

/* Differs between two processes that are started one after the other. */
static uint32_t length_of_message(void) {
    return does("counts_processes") ? 1 + (uint32_t)getpid() % (kBytes - 1) : 6;
}

/* Bears two failures, and aborts at the third one. */
static int ask_often(void) {
    int failures = 0;
    struct ibv_device** const devices = ibv_get_device_list(NULL);
    struct ibv_context* const context = ibv_open_device(devices[0]);
    for (int i = 0; i < 4; ++i) {
        struct ibv_port_attr port;
        failures += ibv_query_port(context, 1, &port) != 0;
    }
    if (failures >= 3) {
        abort();
    }
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int asked_in_vain;

static void* ask(void* context) {
    struct ibv_port_attr port;
    const int failed = ibv_query_port(context, 1, &port) != 0;
    pthread_mutex_lock(&mutex);
    asked_in_vain = failed;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Aborts if the other thread has asked before, and got no answer. Unless an order of threads says
 * so, its call is answered when this thread waits. */
static int ask_by_two_threads(void) {
    struct ibv_device** const devices = ibv_get_device_list(NULL);
    struct ibv_context* const context = ibv_open_device(devices[0]);
    pthread_t thread = 0;
    check(pthread_create(&thread, NULL, ask, context) == 0, "pthread_create");
    pthread_mutex_lock(&mutex);
    if (asked_in_vain) {
        abort();
    }
    pthread_mutex_unlock(&mutex);
    check(pthread_join(thread, NULL) == 0, "pthread_join");
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return 0;
}

int main(int argc, char** argv) {
    pthread_t thread = 0;
    behaviour = argc > 1 ? argv[1] : "";
    if (does("asks_often")) {
        return ask_often();
    }
    if (does("asks_by_two_threads")) {
        return ask_by_two_threads();
    }
    open_ends(kPatient);
    register_more();
    if (does("joins_late")) {
        check(pthread_create(&thread, NULL, end_at_once, NULL) == 0, "pthread_create");
    }
    receive_on(far_end.qp, &far_end, 0, 0, kBytes);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    post_send(&near_end, &wr, length_of_message());
    next_success(&far_end);
    next_success(&near_end);
    if (thread != 0) {
        check(pthread_join(thread, NULL) == 0, "pthread_join");
    }
    close_ends();
    return 0;
}
