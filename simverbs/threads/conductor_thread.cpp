// The thread that moves time while all others sleep elsewhere, and what is said of a world that
// goes nowhere.
#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "simverbs/threads/conductor.hpp"
#include "simverbs/threads/held_signals.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {

using namespace std::chrono_literals;

namespace {

// Between two looks of the helper thread.
constexpr std::chrono::microseconds kLastPause = 1ms;
constexpr auto kSpinLookInterval = 100ms;
constexpr auto kSpinsInVain = 1s;
constexpr int kLooksBeforeUnarmed = 5;

}  // namespace

void Conductor::request_report() noexcept {
    report_wanted_ = true;
    want_helper();
}

void Conductor::write_report(std::string_view why) {
    if (before_report_) {
        before_report_();
    }
    std::string report = hang_report(simulation_, why);
    for (const std::string* const text : waits_) {
        report += *text + "\n";
    }
    for (const Actor* const actor : locked_) {
        report += fmt::format("{} waits for a mutex\n", actor->describe());
    }
    fmt::print(stderr, "simverbs: {}", report);
}

void Conductor::add_wait(const std::string& text) {
    const Lock lock(mutex_);
    waits_.push_back(&text);
}

void Conductor::remove_wait(const std::string& text) {
    const Lock lock(mutex_);
    std::erase(waits_, &text);
}

void Conductor::warn(std::string_view why) {
    if (options_.warn) {
        write_report(why);
    }
}

void Conductor::start_helper() {
    if (options_.helper_thread) {
        start_helper_after(kFirstPause);
    }
}

void Conductor::start_helper_after(std::chrono::microseconds first_pause) {
    std::call_once(helper_started_, [this, first_pause] {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        const ThreadRoster::OwnThreads own;
        helper_ = std::thread([this, first_pause] { helper_loop(first_pause); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    });
}

// The thread and whatever waits on the objects are the parent's, so these begin anew without an
// end.
void Conductor::continue_in_child(Helper helper) {
    for (const auto& actor : actors_) {
        actor->watch = ThreadWatch();
        actor->is_watched = false;
    }
    if (has_helper()) {
        std::construct_at(&helper_);
        std::construct_at(&helper_started_);
        std::construct_at(&stop_mutex_);
        std::construct_at(&stopped_);
        // The parent's may have been about to look, for events that nobody else moves. Most
        // children end before it looks, and are not held up by it.
        helper_wanted_ = true;
        if (helper == Helper::kStarts) {
            start_helper_after(kLastPause);
        }
    }
}

// Moves time when every actor sleeps elsewhere (in epoll_wait on our descriptors, say), so that
// nobody is left to lead. Parked until something was posted; looks rarely while others lead.
void Conductor::helper_loop(std::chrono::microseconds first_pause) {
    t_clock_watch.is_inside = true;  // it is no actor, and takes no turns
    while (!stop_) {
        wait_until_wanted();
        auto pause = std::exchange(first_pause, kFirstPause);
        while (!stop_) {
            std::this_thread::sleep_for(pause);
            // Before looking: what is asked for from here on wakes the helper again.
            helper_wanted_.store(false, std::memory_order_relaxed);
            Lock lock(mutex_, std::try_to_lock);
            if (!lock.owns_lock()) {
                if (!report_wanted_) {
                    pause = std::min(pause * 2, kLastPause);  // another leads, or is about to
                    continue;
                }
                lock.lock();
            }
            if (report_wanted_.exchange(false)) {
                write_report("asked for");
            }
            const bool someone_leads = looker_ != nullptr || spinning_ > 0;
            const bool led = !someone_leads && lead(nullptr, Look::kAtThreads);
            pause = led ? 20us : std::min(pause * 2, kLastPause);
            const bool someone_waits_for_a_look =
                looker_ == nullptr && !(polling_.empty() && watching_.empty() && turning_.empty() &&
                                        locked_.empty() && commanding_.empty());
            if (!led && simulation_.loop().empty() && nothing_queued() &&
                !someone_waits_for_a_look) {
                break;
            }
        }
    }
}

// Where that is asked for, a thread that spins without result is named meanwhile.
void Conductor::wait_until_wanted() {
    if (!options_.warn) {
        helper_wanted_.wait(false, std::memory_order_acquire);
        return;
    }
    while (!helper_wanted_.load(std::memory_order_acquire)) {
        {
            std::unique_lock pause(stop_mutex_);
            stopped_.wait_for(pause, kSpinLookInterval, [this] { return stop_.load(); });
        }
        if (stop_) {
            return;
        }
        const Lock lock(mutex_);
        name_spinners();
        name_unarmed();
    }
}

// A program that asks a descriptor again and again, and never gets an event, has forgotten to arm a
// queue, say.
void Conductor::name_spinners() {
    for (const auto& actor : actors_) {
        if (actor->named_as_spinner || actor->state != ActorState::kRunning ||
            actor->thread->is_inside() || !watch_of(*actor)) {
            continue;
        }
        actor->watch.look(0ns);
        if (actor->watch.spent() > kSpinsInVain && simulation_.loop().empty() && nothing_queued()) {
            actor->named_as_spinner = true;
            warn(fmt::format(
                "{} has used {} s of processor time outside the library, and no "
                "event is left that could end its wait",
                actor->name.empty() ? actor->watch.name() : actor->name, kSpinsInVain.count()));
        }
    }
}

// Returns true if someone waits for an event in a verb, nobody runs, and nothing is to come.
bool Conductor::all_sleep_in_verbs() {
    const bool anyone_blocks = std::ranges::any_of(actors_, [](const auto& actor) {
        return actor->state == ActorState::kBlocked && actor->awaited != nullptr &&
               !actor->awaited->is_there();
    });
    const bool anyone_calls =
        std::ranges::any_of(actors_, [](const auto& actor) { return actor->command != nullptr; });
    return anyone_blocks && !anyone_calls && simulation_.loop().empty() && nothing_queued() &&
           !someone_holds(nullptr, Look::kAtThreads) && sleeps_for_time_ == nullptr;
}

// Returns true if every thread waits for an event in a verb, or for another thread that does.
bool Conductor::all_block_in_verbs() {
    return std::ranges::all_of(actors_, [this](const auto& actor) {
        return actor->gone || actor->state == ActorState::kBlocked || joins_living(*actor);
    });
}

// Completions lie in a queue whose channel gets no event, or nobody is left who could cause one,
// and everyone sleeps: no call is left in which the program could be told, so it is told here,
// once.
void Conductor::name_unarmed() {
    if (named_unarmed_) {
        return;
    }
    std::string unarmed;
    if (all_sleep_in_verbs()) {
        unarmed = describe_unarmed(simulation_);
        if (unarmed.empty() && all_block_in_verbs()) {
            unarmed = "every thread waits in a verb for another one, and no event is left";
        }
    }
    looks_at_unarmed_ = unarmed.empty() ? 0 : looks_at_unarmed_ + 1;
    if (looks_at_unarmed_ == kLooksBeforeUnarmed) {
        named_unarmed_ = true;
        warn(unarmed);
    }
}

bool Conductor::nothing_queued() {
    return posted_.load(std::memory_order_relaxed) == nullptr;
}

}  // namespace simverbs
