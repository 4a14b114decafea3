/* Linked into the probes in place of the functions they wait with: what they take for the wall
   clock is the world's virtual time, so that a wait of seconds costs nothing and a run repeats
   itself. The process that forks and times the probes has no world and keeps the real clock. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <simverbs/simverbs.h>

/* The names are those of the linker (ld(1), --wrap). */
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
int __real_clock_gettime(clockid_t clock, struct timespec* now);
int __real_usleep(useconds_t duration);
int __real_poll(struct pollfd* descriptors, nfds_t count, int timeout);

static pid_t without_world;

__attribute__((constructor)) static void note_process(void) {
    without_world = getpid();
}

static int has_world(void) {
    return getpid() != without_world;
}

static void check(int error) {
    if (error != 0) {
        fprintf(stderr, "virtual_clock: %s\n", simverbs_last_error());
        abort();
    }
}

int __wrap_clock_gettime(clockid_t clock, struct timespec* now) {
    if (!has_world()) {
        return __real_clock_gettime(clock, now);
    }
    int64_t ps;
    check(simverbs_now_ps(&ps));
    now->tv_sec = ps / 1000000000000;
    now->tv_nsec = ps / 1000 % 1000000000;
    return 0;
}

int __wrap_usleep(useconds_t duration) {
    if (!has_world()) {
        return __real_usleep(duration);
    }
    check(simverbs_advance_ps((int64_t)duration * 1000000));
    return 0;
}

int __wrap_poll(struct pollfd* descriptors, nfds_t count, int timeout) {
    if (!has_world()) {
        return __real_poll(descriptors, count, timeout);
    }
    int ready = __real_poll(descriptors, count, 0);
    if (ready == 0 && timeout > 0) {
        check(simverbs_advance_ps((int64_t)timeout * 1000000000));
        ready = __real_poll(descriptors, count, 0);
    }
    return ready;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
