#include "simverbs/threads/conductor.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "simverbs/threads/held_signals.hpp"

namespace simverbs {
namespace {

using namespace std::chrono_literals;

constexpr auto kTurnPause = 50us;

// Steps after which every poller may look, whether or not something has come to its queue.
constexpr std::uint64_t kStepsUnseen = 4096;

std::atomic<std::uint64_t> g_last_conductor{0};

// The instant at which an actor's advance() ends.
class End final : public fabric::EventHandler {
  public:
    void handle(const fabric::Event& /*event*/) override { reached = true; }
    bool reached = false;
};

}  // namespace

Conductor::Conductor(Simulation& simulation, TimeOptions options)
    : simulation_(simulation),
      options_(options),
      id_(++g_last_conductor),
      events_before_actors_(simulation.loop().events_run()) {
    if (options_.schedule == Schedule::kFree) {
        marks_.set(Mark::kScheduledFree);
    }
    if (options_.order) {
        begin_turns(*options_.order);
    }
    for (const auto& entry : ThreadRoster::instance().subscribe(*this)) {
        const std::lock_guard lock(mutex_);
        add_actor(entry);
    }
}

Conductor::~Conductor() {
    end_turns();
    ThreadRoster::instance().unsubscribe(*this);
    stop_helper();
}

void Conductor::stop_helper() {
    {
        const std::lock_guard lock(stop_mutex_);
        stop_ = true;
    }
    stopped_.notify_all();
    helper_wanted_ = true;
    helper_wanted_.notify_all();
    if (helper_.joinable()) {
        helper_.join();
    }
}

void Conductor::ring(Attachment& attachment, const Doorbell& doorbell) {
    Actor& actor = current();
    note_act(actor);
    actor.state.store(ActorState::kRunning, std::memory_order_relaxed);
    {
        const std::lock_guard lock(actor.lock);
        auto& queued = actor.doorbells;
        if (queued.empty()) {
            note_posted(actor);
        } else if (queued.back().attachment == &attachment &&
                   queued.back().doorbell.context == doorbell.context &&
                   queued.back().doorbell.qpn == doorbell.qpn &&
                   queued.back().doorbell.queue == doorbell.queue) {
            queued.back().doorbell.producer = doorbell.producer;
            return;
        }
        queued.push_back({&attachment, doorbell});
    }
    want_helper();
}

void Conductor::want_helper() noexcept {
    if (!helper_wanted_.load(std::memory_order_relaxed)) {
        helper_wanted_.store(true, std::memory_order_release);
        helper_wanted_.notify_one();
    }
}

void Conductor::execute(PendingCommand& command) {
    Actor& self = current();
    note_act(self);
    const Visit visit(self);
    Lock lock(mutex_);
    if (alone(self) || options_.schedule == Schedule::kFree) {
        self.state = ActorState::kRunning;
        note_visit(self);
        stall_watch_.called();
        if (!command.is_question()) {
            drain_all(&self);
        }
        command.run();
        release_waiting();
        return;
    }
    self.command = &command;
    self.due_since = simulation_.loop().now();
    rendezvous(lock, self, ActorState::kCommand, commanding_);
    hold(lock);
    if (!simulation_.loop().empty()) {
        want_helper();  // the others may be blocked, and this thread may end
    }
}

void Conductor::empty_poll(std::uint64_t seen, std::atomic<std::uint32_t>* poller) {
    Actor& self = current();
    t_clock_watch.polled_nothing(seen);
    if (t_clock_watch.take_sleep()) [[unlikely]] {
        note_sleep(self);
    }
    const Visit visit(self, has_others_.load(std::memory_order_relaxed));
    if (options_.schedule == Schedule::kFree) {
        poll_freely(self, seen, poller);
        return;
    }
    Lock lock(mutex_);
    if (all_have_come() && (alone(self) || all_others_block(self))) {
        step_for(self);
        return;
    }
    if (poller != nullptr) {
        poller->store(self.rank + 1, std::memory_order_relaxed);
    }
    rendezvous(lock, self, ActorState::kPolling, poller == nullptr ? watching_ : polling_);
}

// Returns true if every other actor is in a blocking verb, so that nobody has to be asked.
bool Conductor::all_others_block(const Actor& self) {
    remove_ended();
    return options_.schedule == Schedule::kCanonical && self.list == &holding_ &&
           blocked_.size() + 1 == actors_.size();
}

// Nobody but the caller runs, and it found nothing to poll: it goes on after one step.
void Conductor::step_for(Actor& self) {
    note_visit(self);  // the helper thread looks at it, too
    begin_turn();
    drain_all(alone(self) ? &self : nullptr);
    watch_for_stall(step_to_news());
    release_waiting();
}

// A completion went to a queue that the actor of that rank polled last.
void Conductor::note_news(std::uint32_t poller) {
    Actor* const actor = poller > by_rank_.size() ? nullptr : by_rank_[poller - 1];
    if (actor == nullptr || actor->list == &passed_) {
        news_for_all_ = true;  // who looks there next is not known
    } else if (actor->list == &polling_ && !actor->has_news) {
        actor->has_news = true;
        news_.push_back(actor);
    }
}

void Conductor::event_delivered() {
    delivered(0);
    ++event_deliveries_;
    for (Actor* actor : passed_) {
        actor->watch.expect_wake();
    }
    if (options_.schedule == Schedule::kFree) {
        for (Actor* actor : holding_) {
            actor->watch.expect_wake();
        }
    }
}

// Among those that drain_all() asks. With the actor's lock held, which had nothing queued.
void Conductor::note_posted(Actor& actor) {
    actor.next_posted = posted_.load(std::memory_order_relaxed);
    while (!posted_.compare_exchange_weak(actor.next_posted, &actor, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
}

bool Conductor::drain(Actor& actor) {
    {
        const std::lock_guard lock(actor.lock);
        if (actor.doorbells.empty()) {
            return false;
        }
        actor.doorbells.swap(actor.draining);
    }
    stall_watch_.called();
    for (const QueuedDoorbell& entry : actor.draining) {
        entry.attachment->ring(entry.doorbell);
    }
    actor.draining.clear();
    return true;
}

bool Conductor::has_queued(Actor& actor) {
    const std::lock_guard lock(actor.lock);
    return !actor.doorbells.empty();
}

void Conductor::drain_posted(Actor* last) {
    if (last != nullptr && actors_.size() == 1 && commanding_.empty()) {
        posted_.store(nullptr, std::memory_order_relaxed);  // nobody else posts
        drain(*last);
        return;
    }
    draining_.clear();
    for (Actor* actor = posted_.exchange(nullptr, std::memory_order_acquire); actor != nullptr;
         actor = actor->next_posted) {
        draining_.push_back(actor);
    }
    std::ranges::sort(draining_, {}, [](const Actor* actor) { return actor->order; });
    const auto has_no_order = [](const Actor* actor) {
        return actor->name.empty() && !actor->thread->is_announced;
    };
    std::size_t unordered = 0;
    for (Actor* actor : draining_) {
        if (actor != last) {
            unordered += drain(*actor) && has_no_order(actor) && actor->command == nullptr ? 1 : 0;
        }
    }
    unordered += static_cast<std::size_t>(std::ranges::count_if(commanding_, has_no_order));
    if (unordered > 1) {
        marks_.set(Mark::kUnnamedActorsRaced);
    }
    if (last != nullptr) {
        drain(*last);
    }
}

bool Conductor::run_commands() {
    std::vector<Actor*> in_turn(commanding_.begin(), commanding_.end());
    std::ranges::sort(in_turn, {}, [](const Actor* actor) { return actor->order; });
    if (options_.schedule == Schedule::kSerial && in_turn.size() > 1) {
        in_turn.resize(1);
    }
    for (Actor* actor : in_turn) {
        stall_watch_.called();
        std::exchange(actor->command, nullptr)->run();
        release(*actor);
    }
    if (!in_turn.empty()) {
        release_waiting();  // a command may deliver, too: a flush, a link that goes down
    }
    return !in_turn.empty();
}

void Conductor::release(Actor& actor) {
    actor.state.store(ActorState::kRunning, std::memory_order_relaxed);
    actor.due = false;
    note_visit(actor);
    if (std::exchange(actor.has_news, false)) {
        std::erase(news_, &actor);
    }
    stop_spinning(actor);
    holding_.take(actor);
    if (looker_ == &actor) {
        looker_ = nullptr;
        want_helper();  // the others sleep, and none of them looks
    }
    mutex_.release(actor.wake);
}

void Conductor::release_blocked() {
    for (std::size_t i = blocked_.size(); i-- > 0;) {
        if (blocked_[i].awaited->is_there()) {
            release_or_note(blocked_[i]);
        }
    }
}

// After a step. Pollers of a completion queue sleep on while there is nothing in it, but not for
// long: their programs may look elsewhere between two polls.
void Conductor::release_pollers(bool anything_happened) {
    ++steps_;
    const bool for_all = news_for_all_ || (anything_happened && news_.empty()) ||
                         steps_ % kStepsUnseen == 0 || options_.schedule == Schedule::kSerial;
    released_.swap(news_);
    for (Actor* actor : released_) {
        actor->has_news = false;
        if (!for_all) {
            release(*actor);
        }
    }
    released_.clear();
    for (std::size_t i = polling_.size(); for_all && i-- > 0;) {
        release_or_note(polling_[i]);
    }
    for (std::size_t i = watching_.size(); i-- > 0;) {
        release_or_note(watching_[i]);
    }
    news_for_all_ = false;
}

// Before time jumps far, whoever has slept through a step may look. True: somebody does.
bool Conductor::show_before_jump() {
    const fabric::EventLoop& loop = simulation_.loop();
    const auto next = loop.next_time();
    if (!next || *next - loop.now() <= kFarJump || options_.schedule == Schedule::kSerial) {
        return false;
    }
    bool any = false;
    for (std::size_t i = polling_.size(); i-- > 0;) {
        if (polling_[i].waits_since != steps_) {
            release(polling_[i]);
            any = true;
        }
    }
    return any;
}

std::optional<bool> Conductor::step_alone(fabric::SimDuration most) {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    remove_ended();
    const bool others_act = std::any_of(actors_.begin(), actors_.end(), [&self](const auto& actor) {
        return actor.get() != &self && actor->has_called && !actor->leaves();
    });
    if (others_act) {
        return std::nullopt;
    }
    // A thread that has called nothing yet may be on its way.
    while (!alone(self) && someone_holds(&self, Look::kAtThreads)) {
        lock.unlock();
        std::this_thread::sleep_for(kTurnPause);
        lock.lock();
    }
    drain_all(&self);
    const auto next = simulation_.loop().next_time();
    if (next && *next - simulation_.loop().now() > most) {
        return false;
    }
    // Without an event, too: what waits is handed over.
    const bool ran = simulation_.step_exactly() > 0;
    release_pollers(true);
    release_waiting();
    return ran;
}

void Conductor::advance(fabric::SimDuration duration) {
    Actor& self = current();
    const Visit visit(self);
    Lock lock(mutex_);
    if ((alone(self) && all_have_come()) || options_.schedule == Schedule::kFree) {
        drain_all(&self);
        simulation_.run_for(duration);
        release_waiting();
        return;
    }
    class Begin final : public PendingCommand {
      public:
        Begin(Simulation& simulation, fabric::SimDuration duration, End& end)
            : simulation_(simulation), duration_(duration), end_(end) {}
        void run() override { simulation_.schedule_mark(duration_, end_); }

      private:
        Simulation& simulation_;
        fabric::SimDuration duration_;
        End& end_;
    };
    End end;
    Begin begin(simulation_, duration, end);
    self.command = &begin;
    self.due_since = simulation_.loop().now();
    rendezvous(lock, self, ActorState::kCommand, commanding_);
    for (hold(lock); !end.reached; hold(lock)) {
        rendezvous(lock, self, ActorState::kPolling, watching_);
    }
}

}  // namespace simverbs
