#include "simverbs/threads/held_signals.hpp"

#include <cerrno>
#include <initializer_list>

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

namespace simverbs {
namespace {

// All but those that an instruction raises, which cannot wait.
sigset_t asynchronous_signals() {
    sigset_t set;
    sigfillset(&set);
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
        sigdelset(&set, signal);
    }
    return set;
}

bool interrupts(int signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) {
        return false;
    }
    const bool handled = (action.sa_flags & SA_SIGINFO) != 0 ||
                         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);  // NOLINT
    return handled && (action.sa_flags & SA_RESTART) == 0;
}

}  // namespace

HeldSignals::~HeldSignals() {
    if (holding_) {
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
}

void HeldSignals::hold() {
    const sigset_t held = asynchronous_signals();
    holding_ = pthread_sigmask(SIG_BLOCK, &held, &before_) == 0;
}

bool HeldSignals::let_go() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    bool interrupted = false;
    for (int signal = 1; signal <= SIGRTMAX; ++signal) {
        if (sigismember(&pending, signal) == 1 && sigismember(&before_, signal) == 0) {
            interrupted = interrupts(signal) || interrupted;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    holding_ = false;
    return interrupted;
}

int wait_for_message(int descriptor) {
    char first = 0;
    return recv(descriptor, &first, sizeof first, MSG_PEEK) < 0 && errno == EINTR ? EINTR : 0;
}

bool has_message(int descriptor) {
    pollfd look{descriptor, POLLIN, 0};
    return poll(&look, 1, 0) != 0;
}

}  // namespace simverbs
