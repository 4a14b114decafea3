#include "simverbs/driver/report_signal.hpp"

#include <atomic>
#include <csignal>

#include <sched.h>

namespace simverbs::driver {
namespace {

// The handler may run in any thread, also while another one ends the reporter: whoever ends it
// waits for the handler.
std::atomic<Reporter*> g_reporting{nullptr};
std::atomic<int> g_handlers{0};

void on_report_signal(int /*signal*/) {
    ++g_handlers;
    if (Reporter* reporter = g_reporting.load(); reporter != nullptr) {
        reporter->request_report();
    }
    --g_handlers;
}

}  // namespace

void report_on_signal(Reporter& reporter) {
    g_reporting = &reporter;
    struct sigaction current {};
    if (sigaction(SIGUSR2, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
        struct sigaction ours {};
        ours.sa_handler = on_report_signal;
        ours.sa_flags = SA_RESTART;
        sigaction(SIGUSR2, &ours, nullptr);
    }
}

void stop_reporting(Reporter& reporter) {
    Reporter* expected = &reporter;
    g_reporting.compare_exchange_strong(expected, nullptr);
    while (g_handlers.load() > 0) {
        sched_yield();
    }
}

}  // namespace simverbs::driver
