// Mutexes and condition variables of a program whose threads take turns (SIMVERBS_ORDER): which
// thread gets a mutex is a choice, too, and not decided by the machine. Without turns each of these
// functions is libc's.
//
// A thread that takes turns never sleeps for a mutex in the kernel. It tries, and waits for its
// next turn after somebody has unlocked one.
#include <atomic>
#include <cerrno>
#include <cstdint>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/of_libc.hpp"
#include "simverbs/threads/clock_watch.hpp"
#include "simverbs/threads/conductor.hpp"

namespace simverbs::abi {
namespace {

using OfMutex = OfLibc<int (*)(pthread_mutex_t*)>;
constinit OfMutex g_mutex_lock("pthread_mutex_lock");
constinit OfMutex g_mutex_trylock("pthread_mutex_trylock");
constinit OfMutex g_mutex_unlock("pthread_mutex_unlock");
constinit OfLibc<int (*)(pthread_cond_t*, pthread_mutex_t*)> g_cond_wait("pthread_cond_wait");
constinit OfLibc<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)> g_cond_timedwait(
    "pthread_cond_timedwait");
constinit OfLibc<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>
    g_cond_clockwait("pthread_cond_clockwait");

// ThreadSanitizer has functions of its own before these, also for mutexes of this library: a caller
// is not known. Mutexes have no turns then.
constinit std::atomic<bool> g_callers_are_hidden{false};

[[gnu::constructor]] void find_locks() {
    g_callers_are_hidden = dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
    g_mutex_lock.find();
    g_mutex_trylock.find();
    g_mutex_unlock.find();
    g_cond_wait.find();
    g_cond_timedwait.find();
    g_cond_clockwait.find();
}

// The code of this library, whose own mutexes are none of the program's.
struct Text {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

int find_text(dl_phdr_info* object, std::size_t /*bytes*/, void* found) {
    const auto here = reinterpret_cast<std::uintptr_t>(&find_text);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_LOAD && here >= begin && here < begin + part.p_memsz) {
            *static_cast<Text*>(found) = {begin, begin + part.p_memsz};
            return 1;
        }
    }
    return 0;
}

bool is_of_library(const void* caller) {
    static const Text kText = [] {
        Text text;
        dl_iterate_phdr(find_text, &text);
        return text;
    }();
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    return address >= kText.begin && address < kText.end;
}

// The conductor of whose turns the calling thread takes one; nullptr: it takes none here.
Conductor* turns_of(const void* caller) {
    Conductor* const conductor = Conductor::of_turns();
    return conductor == nullptr || g_callers_are_hidden || t_clock_watch.is_inside ||
                   is_of_library(caller)
               ? nullptr
               : conductor;
}

// Libc's function knows what locking it again means for its type: EDEADLK, say.
bool is_held_by_caller(const pthread_mutex_t& mutex) {
    return mutex.__data.__owner == gettid();
}

int lock_in_turn(Conductor& conductor, pthread_mutex_t* mutex) {
    if (is_held_by_caller(*mutex)) {
        return g_mutex_lock(mutex);
    }
    conductor.take_turn();
    while (true) {
        const std::uint64_t seen = conductor.unlocks();
        const int error = g_mutex_trylock(mutex);
        if (error != EBUSY) {
            return error;
        }
        if (!conductor.await_unlock(seen)) {
            return g_mutex_lock(mutex);
        }
    }
}

}  // namespace

SIMVERBS_ABI int simverbs_abi_pthread_mutex_lock(pthread_mutex_t* mutex) {
    Conductor* const conductor = turns_of(__builtin_return_address(0));
    return conductor == nullptr ? g_mutex_lock(mutex) : lock_in_turn(*conductor, mutex);
}

SIMVERBS_ABI int simverbs_abi_pthread_mutex_trylock(pthread_mutex_t* mutex) {
    if (Conductor* const conductor = turns_of(__builtin_return_address(0)); conductor != nullptr) {
        conductor->take_turn();
    }
    return g_mutex_trylock(mutex);
}

SIMVERBS_ABI int simverbs_abi_pthread_mutex_unlock(pthread_mutex_t* mutex) {
    const int error = g_mutex_unlock(mutex);
    if (Conductor* const conductor = turns_of(__builtin_return_address(0)); conductor != nullptr) {
        conductor->note_unlock();
    }
    return error;
}

// Whoever waits for the mutex tries it in its next turn, which comes only once this thread sleeps:
// the mutex is free then.
SIMVERBS_ABI int simverbs_abi_pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
    if (Conductor* const conductor = turns_of(__builtin_return_address(0)); conductor != nullptr) {
        conductor->note_unlock();
    }
    return g_cond_wait(condition, mutex);
}

SIMVERBS_ABI int simverbs_abi_pthread_cond_timedwait(pthread_cond_t* condition,
                                                     pthread_mutex_t* mutex,
                                                     const timespec* until) {
    if (Conductor* const conductor = turns_of(__builtin_return_address(0)); conductor != nullptr) {
        conductor->note_unlock();
    }
    return g_cond_timedwait(condition, mutex, until);
}

SIMVERBS_ABI int simverbs_abi_pthread_cond_clockwait(pthread_cond_t* condition,
                                                     pthread_mutex_t* mutex, clockid_t clock,
                                                     const timespec* until) {
    if (Conductor* const conductor = turns_of(__builtin_return_address(0)); conductor != nullptr) {
        conductor->note_unlock();
    }
    return g_cond_clockwait(condition, mutex, clock, until);
}

}  // namespace simverbs::abi
