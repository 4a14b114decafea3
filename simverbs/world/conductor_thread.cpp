// The thread that moves time while all others sleep elsewhere, and what is said of a world that
// goes nowhere.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <pthread.h>

#include "simverbs/world/conductor.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {

using namespace std::chrono_literals;

void Conductor::request_report() noexcept {
    report_wanted_ = true;
    want_helper();
}

void Conductor::write_report(std::string_view why) {
    if (before_report_) {
        before_report_();
    }
    fmt::print(stderr, "simverbs: {}, at {} ps of virtual time\n{}", why,
               fabric::to_picoseconds(simulation_.loop().now()), describe_queue_pairs(simulation_));
}

void Conductor::warn(std::string_view why) {
    if (options_.warn) {
        write_report(why);
    }
}

void Conductor::start_helper() {
    std::call_once(helper_started_, [this] {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        helper_ = std::thread([this] { helper_loop(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    });
}

// Moves time when every actor sleeps elsewhere (in epoll_wait on our descriptors, say), so that
// nobody is left to lead. Parked until something was posted; looks rarely while others lead.
void Conductor::helper_loop() {
    while (!stop_) {
        helper_wanted_.wait(false, std::memory_order_acquire);
        auto pause = std::chrono::microseconds(100us);
        while (!stop_) {
            std::this_thread::sleep_for(pause);
            // Before looking: what is asked for from here on wakes the helper again.
            helper_wanted_.store(false, std::memory_order_relaxed);
            const Lock lock(mutex_);
            if (report_wanted_.exchange(false)) {
                write_report("asked for");
            }
            const bool someone_leads =
                std::any_of(actors_.begin(), actors_.end(), [](const auto& actor) {
                    return actor->state != ActorState::kRunning && !actor->in_kernel;
                });
            const bool led = !someone_leads && everyone_waits(nullptr) && lead();
            pause = led ? 20us : std::min(pause * 2, std::chrono::microseconds(1ms));
            if (!led && simulation_.loop().empty() && nothing_queued()) {
                break;
            }
        }
    }
}

bool Conductor::nothing_queued() {
    return std::none_of(actors_.begin(), actors_.end(),
                        [](const auto& actor) { return has_queued(*actor); });
}

}  // namespace simverbs
