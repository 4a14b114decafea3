// Functions of libc that programs find in this library first (symbols/symbols.list, `interpose`).
// Each does what libc's does; the library learns which threads there are, who reads the
// clock and who sleeps.
//
// A program that loads the library by dlopen(3) goes on calling libc's: a thread that it creates
// then is known from its first verb on.
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/of_libc.hpp"
#include "simverbs/threads/clock_watch.hpp"
#include "simverbs/threads/thread_roster.hpp"

namespace simverbs::abi {
namespace {

using Routine = void* (*)(void*);

constinit OfLibc<int (*)(pthread_t*, const pthread_attr_t*, Routine, void*)> g_create(
    "pthread_create");
constinit OfLibc<int (*)(pthread_t, void**)> g_join("pthread_join");
constinit OfLibc<int (*)(clockid_t, timespec*)> g_clock_gettime("clock_gettime");
constinit OfLibc<int (*)(timeval*, void*)> g_gettimeofday("gettimeofday");
constinit OfLibc<int (*)(const timespec*, timespec*)> g_nanosleep("nanosleep");
constinit OfLibc<int (*)(clockid_t, int, const timespec*, timespec*)> g_clock_nanosleep(
    "clock_nanosleep");
constinit OfLibc<int (*)(useconds_t)> g_usleep("usleep");
constinit OfLibc<unsigned (*)(unsigned)> g_sleep("sleep");

// A sanitizer's run time lies between the program and this library, with two consequences. Its
// allocator reads the clock when memory is freed, through the functions that a program calls, and
// would mark the run: clocks are not watched. And it interposes pthread_create(3) as well: what is
// called here is its own start of a thread, before which a thread must not call anything that it
// interposes, malloc(3) and pthread_mutex_lock(3) included.
bool is_sanitized() {
    for (const char* start :
         {"__asan_init", "__hwasan_init", "__lsan_init", "__msan_init", "__tsan_init"}) {
        if (dlsym(RTLD_DEFAULT, start) != nullptr) {
            return true;
        }
    }
    return false;
}

constinit std::atomic<bool> g_is_sanitized{false};

[[gnu::constructor]] void find_all() {
    g_create.find();
    g_join.find();
    g_clock_gettime.find();
    g_gettimeofday.find();
    g_nanosleep.find();
    g_clock_nanosleep.find();
    g_usleep.find();
    g_sleep.find();
    g_is_sanitized.store(is_sanitized(), std::memory_order_relaxed);
}

void watch_clock() {
    if (!g_is_sanitized.load(std::memory_order_relaxed)) {
        t_clock_watch.read();
    }
}

struct Start {
    Routine routine;
    void* argument;
    std::shared_ptr<ThreadEntry> entry;
};

void* run(void* given) {
    Routine routine = nullptr;
    void* argument = nullptr;
    {
        const std::unique_ptr<Start> start(static_cast<Start*>(given));
        ThreadRoster::instance().begin(start->entry);
        routine = start->routine;
        argument = start->argument;
    }
    return routine(argument);  // with nothing of ours to unwind: it may call pthread_exit(3)
}

// On the stack of the creator, until the thread has taken it.
struct SanitizedStart {
    Routine routine;
    void* argument;
    ThreadEntry* entry;  // its id is set once the thread has taken the rest
};

// Only tells the creator its id, by a system call: the sanitizer does not know this thread yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void* run_sanitized(void* given) {
    auto* const start = static_cast<SanitizedStart*>(given);
    const Routine routine = start->routine;
    void* const argument = start->argument;
    start->entry->id.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
    return routine(argument);
}

// The creator says what the thread says elsewhere, and waits for it to begin.
int create_sanitized(pthread_t* thread, const pthread_attr_t* attributes, Routine routine,
                     void* argument) {
    ThreadRoster& roster = ThreadRoster::instance();
    const std::shared_ptr<ThreadEntry> entry = roster.announce();
    SanitizedStart start{routine, argument, entry.get()};
    const int error = g_create(thread, attributes, &run_sanitized, static_cast<void*>(&start));
    if (error != 0) {
        roster.leave(*entry);
        return error;
    }
    while (entry->id.load(std::memory_order_acquire) == 0) {
        sched_yield();
    }
    roster.created(entry, *thread);
    roster.began(*entry);
    return 0;
}

}  // namespace

SIMVERBS_ABI int simverbs_abi_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                             Routine routine, void* argument) {
    if (ThreadRoster::OwnThreads::are_created()) {
        return g_create(thread, attributes, routine, argument);
    }
    if (g_is_sanitized.load(std::memory_order_relaxed)) {
        return create_sanitized(thread, attributes, routine, argument);
    }
    ThreadRoster& roster = ThreadRoster::instance();
    std::unique_ptr<Start> start(new (std::nothrow) Start{routine, argument, roster.announce()});
    if (start == nullptr) {
        return EAGAIN;
    }
    const std::shared_ptr<ThreadEntry> entry = start->entry;
    const int error = g_create(thread, attributes, &run, static_cast<void*>(start.get()));
    if (error != 0) {
        roster.leave(*entry);
        return error;
    }
    [[maybe_unused]] const Start* the_threads_now = start.release();
    roster.created(entry, *thread);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_pthread_join(pthread_t thread, void** result) {
    ThreadRoster& roster = ThreadRoster::instance();
    const std::shared_ptr<ThreadEntry> entry = roster.find(thread);
    if (entry == nullptr) {
        return g_join(thread, result);
    }
    const std::shared_ptr<ThreadEntry> self = roster.current();
    self->joins.store(entry->number, std::memory_order_release);
    const int error = g_join(thread, result);
    self->joins.store(0, std::memory_order_release);
    if (error == 0) {
        roster.joined(entry);
    }
    return error;
}

SIMVERBS_ABI int simverbs_abi_clock_gettime(clockid_t clock, timespec* time) {
    watch_clock();
    return g_clock_gettime(clock, time);
}

SIMVERBS_ABI int simverbs_abi_gettimeofday(timeval* time, void* zone) {
    watch_clock();
    return g_gettimeofday(time, zone);
}

SIMVERBS_ABI int simverbs_abi_nanosleep(const timespec* duration, timespec* left) {
    t_clock_watch.sleeps();
    return g_nanosleep(duration, left);
}

SIMVERBS_ABI int simverbs_abi_clock_nanosleep(clockid_t clock, int flags, const timespec* until,
                                              timespec* left) {
    t_clock_watch.sleeps();
    return g_clock_nanosleep(clock, flags, until, left);
}

SIMVERBS_ABI int simverbs_abi_usleep(useconds_t duration) {
    t_clock_watch.sleeps();
    return g_usleep(duration);
}

SIMVERBS_ABI unsigned simverbs_abi_sleep(unsigned duration) {
    t_clock_watch.sleeps();
    return g_sleep(duration);
}

}  // namespace simverbs::abi
