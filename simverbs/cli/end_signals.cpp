#include "simverbs/cli/end_signals.hpp"

#include <atomic>

namespace simverbs::cli {
namespace {

std::atomic<int> g_first{0};
std::atomic<int> g_count{0};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

EndSignals::EndSignals(Afterwards afterwards) : afterwards_(afterwards) {
    g_first = 0;
    g_count = 0;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        sigaction(kSignals[i], nullptr, &before_[i]);
        if (before_[i].sa_handler != SIG_IGN) {
            struct sigaction noted {};
            noted.sa_handler = note;
            sigaction(kSignals[i], &noted, nullptr);
        }
    }
}

EndSignals::~EndSignals() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
        sigaction(kSignals[i], &before_[i], nullptr);
    }
    if (afterwards_ == Afterwards::kRaise && g_first != 0) {
        raise(g_first);
    }
}

int EndSignals::first() {
    return g_first;
}

int EndSignals::count() {
    return g_count;
}

void EndSignals::note(int signal) {
    int none = 0;
    g_first.compare_exchange_strong(none, signal);
    ++g_count;
}

}  // namespace simverbs::cli
