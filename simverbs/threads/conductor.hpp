// Advances the time of an embedded world: keeps its actors, answers the questions of the rule of
// time (simverbs/time/rule.hpp) and carries out its decisions.
//
// One lock holds the world. Under `canonical` an empty poll returns only after every actor has
// stopped running and one step has run; posts are merged at the step by (rank, actor, order), never
// by arrival, and so are commands where several actors run. Under `free` an empty poll returns at
// once. A step may be led by any thread that waits; which one leads changes nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "simverbs/threads/actor.hpp"
#include "simverbs/threads/object_use.hpp"
#include "simverbs/threads/processors.hpp"
#include "simverbs/threads/turn_order.hpp"
#include "simverbs/threads/world_mutex.hpp"
#include "simverbs/time/early_polls.hpp"
#include "simverbs/time/pace.hpp"
#include "simverbs/time/rule.hpp"
#include "simverbs/time/stall_watch.hpp"
#include "simverbs/time/time_options.hpp"
#include "simverbs/world/run_marks.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

// The calling thread's actor, for a quick look: what has a destructor costs a check at every use.
struct KnownActor {
    Actor* actor = nullptr;
    std::uint64_t conductor = 0;
};
extern constinit thread_local KnownActor t_known_actor;

class Conductor final : private ThreadRoster::Listener {
  public:
    Conductor(Simulation& simulation, TimeOptions options);
    ~Conductor();
    Conductor(const Conductor&) = delete;
    Conductor& operator=(const Conductor&) = delete;

    // The calling thread's actor.
    Actor& current() {
        return t_known_actor.conductor == id_ ? *t_known_actor.actor : find_current();
    }
    // Time stands until that many threads have called something.
    void expect_actors(std::uint32_t count);
    // Names it, so that what several threads do within a step has an order of its own. False:
    // another living thread has that name.
    bool name_current(std::string_view name);

    void ring(Attachment& attachment, const Doorbell& doorbell);
    // Runs `command` with the world held, in its turn.
    void execute(PendingCommand& command);
    // The caller found nothing to poll, as of `seen` deliveries. `poller` belongs to the queue in
    // which it looked: see delivered().
    void empty_poll(std::uint64_t seen, std::atomic<std::uint32_t>* poller);
    // The caller blocks in a verb until `awaited` is there; 0, or EINTR as read(2) would. Several
    // may wait for one: who returns may find nothing.
    int wait_for(Awaited& awaited);
    // Calls `take` with the world held. Time stands.
    template <typename Take>
    auto look(Take take) {
        const Visit visit(current());
        const Lock lock(mutex_);
        return take();
    }
    // With the world held: a completion became visible in a queue that this actor polled last, 0
    // if none has; an event went to a descriptor; a peer wrote to memory.
    void delivered(std::uint32_t poller) {
        deliveries_.store(deliveries_.load(std::memory_order_relaxed) + 1,
                          std::memory_order_release);
        if (poller == 0) {
            news_for_all_ = true;
        } else {
            note_news(poller);
        }
    }
    void event_delivered();
    void memory_written() { news_for_all_ = true; }
    [[nodiscard]] const std::atomic<std::uint64_t>& deliveries() const { return deliveries_; }
    // Returns true if others than the thread that asks may act.
    [[nodiscard]] const std::atomic<bool>& has_several_actors() const { return several_actors_; }
    // The calling thread uses an object, `kind` and `number` of which name it in a mark. With the
    // object's lock held.
    void note_use(ObjectUse& object, Use use, std::string_view kind, std::uint32_t number);

    fabric::SimTime now() {
        const Inside inside(*ThreadRoster::instance().current());
        const std::lock_guard lock(mutex_);
        return simulation_.loop().now();
    }
    // With a TurnOrder the caller waits for its turn, before it posts or polls. It holds no lock of
    // the library.
    void take_turn();
    // The conductor of this process whose threads take turns; nullptr: none. Wait-free.
    static Conductor* of_turns();
    // How often a mutex of the program was unlocked; to be read before one is tried.
    [[nodiscard]] std::uint64_t unlocks() const { return unlocks_.load(); }
    void note_unlock();
    // The caller found its mutex locked, as of `seen` unlocks: returns at its turn after the next
    // one. False: no other thread calls verbs, so that nobody here can unlock it.
    bool await_unlock(std::uint64_t seen);
    [[nodiscard]] bool has_turns() const { return turn_order_.has_value(); }
    // Turns so far for which several could be chosen.
    [[nodiscard]] std::uint64_t turns_digest() const {
        return turn_order_ ? turn_order_->turns_digest() : 0;
    }
    // Returns when virtual time has moved by `duration`; to the other actors the caller is one that
    // polls all the while.
    void advance(fabric::SimDuration duration);
    // Runs the next instant where it is at most `most` ahead; whether it did. Nothing: the caller
    // is not the only actor.
    std::optional<bool> step_alone(fabric::SimDuration most);

    [[nodiscard]] const RunMarks& marks() const { return marks_; }

    // Starts the thread that moves time while all others sleep elsewhere, unless the options are
    // without it: then it starts once a second thread calls something.
    void start_helper();
    // Ends it, before what it looks at goes.
    void stop_helper();
    // Returns true if that thread exists.
    [[nodiscard]] bool has_helper() const { return helper_.joinable(); }
    // In a child that keeps the world of its parent (ThreadRoster::WholeFork): starts that thread
    // there, if the parent has it, or goes on without. With the world held.
    enum class Helper : bool { kStarts, kStays };
    void continue_in_child(Helper helper);
    // That thread writes to stderr what each queue pair waits for. Async-signal-safe.
    void request_report() noexcept;
    // Called, with the world held, before each report: a program that hangs may be killed next, and
    // its traces should tell how it came to that. Before the world is used.
    void before_report(std::function<void()> call) { before_report_ = std::move(call); }

    // Lines of reports for as long as threads wait in verbs for each other, outside the world:
    // "waits for acknowledgments ...". The caller keeps the text.
    void add_wait(const std::string& text);
    void remove_wait(const std::string& text);

  private:
    using Lock = std::unique_lock<WorldMutex>;

    void thread_announced(const std::shared_ptr<ThreadEntry>& entry) override;
    void thread_began(const ThreadEntry& /*entry*/) override {}
    void thread_left(const ThreadEntry& entry) override;
    [[gnu::cold]] Actor& find_current();
    Actor& add_actor(const std::shared_ptr<ThreadEntry>& entry);
    void number_actors();
    void count_actors();
    void note_news(std::uint32_t poller);
    // The calling thread posts or commands something: perhaps because of the time of day.
    void note_act(const Actor& self) {
        const bool by_clock = t_clock_watch.acts(deliveries_.load(std::memory_order_relaxed));
        if (by_clock || self.went_early.load(std::memory_order_relaxed)) [[unlikely]] {
            mark_act(self, by_clock);
        }
        if (t_clock_watch.take_sleep()) [[unlikely]] {
            note_sleep(self);
        }
    }
    [[gnu::cold]] void mark_act(const Actor& self, bool by_clock);
    [[gnu::cold]] void note_sleep(const Actor& self);
    // Notes that the actor's thread has been in the library since the last look at it.
    void note_visit(Actor& actor);
    void note_signal(const Actor& actor);
    static bool watch_of(Actor& actor);
    // Hands over what the actor posted; whether there was anything.
    bool drain(Actor& actor);
    void note_posted(Actor& actor);
    // In order of the actors; `last` after all others, which it has joined or does not wait for.
    void drain_all(Actor* last = nullptr) {
        if (posted_.load(std::memory_order_relaxed) != nullptr) {
            drain_posted(last);
        }
    }
    void drain_posted(Actor* last);
    static bool has_queued(Actor& actor);
    // Returns true if no other thread calls verbs any more.
    [[nodiscard]] bool alone(const Actor& self) const {
        return actors_.size() == 1 || all_others_leave(self);
    }
    [[nodiscard]] bool all_others_leave(const Actor& self) const;
    bool all_others_block(const Actor& self);
    // That expect_actors() waits for.
    [[nodiscard]] bool all_have_come() const { return callers_ >= expected_callers_; }
    class BlockingWait;
    // Returns with the world held or let go.
    void rendezvous(Lock& lock, Actor& self, ActorState state, ActorList& list);
    static void hold(Lock& lock) {
        if (!lock.owns_lock()) {
            lock.lock();
        }
    }
    bool spin(Lock& lock, Actor& self, std::uint32_t ticket);
    void lead_on(Actor& self, std::uint32_t ticket);
    [[nodiscard]] Actor* leader_to_ask(const Actor& self) const;
    // Other processors keep the line in their caches where nothing changes.
    template <typename T>
    static void change(std::atomic<T>& value, T to) {
        if (value.load(std::memory_order_relaxed) != to) {
            value.store(to, std::memory_order_relaxed);
        }
    }
    void forget_leader(const Actor& actor) {
        if (leader_.load(std::memory_order_relaxed) == &actor) {
            leader_.store(nullptr, std::memory_order_relaxed);
        }
    }
    [[nodiscard]] bool leader_polls_still(Actor& self);
    [[nodiscard]] std::uint32_t polls_before_yield(bool leads) const;
    void stop_spinning(Actor& actor);
    void let_pollers_look();
    // Those that sleep elsewhere need no processor.
    [[nodiscard]] bool outnumber_processors() const {
        return actors_.size() > processors_.count() + passed_.size();
    }
    // Nobody else needs the processor of a thread that watches its word.
    [[nodiscard]] bool has_processor_to_spin() const {
        return options_.schedule == Schedule::kFree
                   ? count_awake() + spinning_ < processors_.count()
                   : !outnumber_processors() && holding_.size() + spinning_ < processors_.count();
    }
    [[nodiscard]] std::size_t count_awake() const;
    void sleep_until_released(Lock& lock, Actor& self, std::uint32_t ticket);
    void wake_next_here();
    void take_placement(Actor& self) const;
    static constexpr std::chrono::microseconds kFirstPause{100};
    class View;
    // kAtRecords believes what the library knows of actors; kAtThreads asks the kernel about the
    // threads of those that run.
    enum class Look : std::uint8_t { kAtRecords, kAtThreads };
    // Returns true if an actor other than `self` holds time.
    [[nodiscard]] bool someone_holds(const Actor* self, Look look);
    [[nodiscard]] bool someone_holds_freely(const Actor* self);
    void look_at_holding(const Actor* self);
    bool look_at_passed(const Actor* self);
    [[nodiscard]] Hold judge_actor(Actor& actor);
    [[nodiscard]] Whereabouts whereabouts_of(Actor& actor);
    [[nodiscard]] bool joins_living(Actor& actor);
    [[nodiscard]] Hold look_at(Actor& actor);
    // Carries out what the rule of time decides. False if nothing was done.
    bool lead(const Actor* self, Look look);
    void begin_turn() {
        turn_.store(turn_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    bool take_posts();
    bool move(Decision decision);
    bool pollers_must_look();
    std::size_t step_to_news();
    void note_sleepers(bool walked_for_one);
    bool run_commands();
    void watch_for_stall(std::size_t events);
    void write_report(std::string_view why);
    void warn(std::string_view why);
    [[nodiscard]] bool watch_deliveries(std::uint64_t seen) const;
    void poll_freely(Actor& self, std::uint64_t seen, const void* queue);
    void release_pollers(bool anything_happened);
    bool show_before_jump();
    void begin_turns(std::uint64_t order);
    void end_turns();
    bool let_next_go();
    bool let_chosen_go();
    void note_due(Actor& actor);
    void release(Actor& actor);
    void release_or_note(Actor& actor);
    void step_for(Actor& self);
    void want_helper() noexcept;
    // Lets blocked actors go on whose descriptors may have a message.
    void release_waiting() {
        if (std::exchange(noticed_, event_deliveries_) != event_deliveries_) [[unlikely]] {
            release_blocked();
        }
    }
    void release_blocked();
    void remove_ended();
    [[nodiscard]] bool has_ended(Actor& actor);
    // It looks for the first time `first_pause` after something was posted.
    void start_helper_after(std::chrono::microseconds first_pause);
    void helper_loop(std::chrono::microseconds first_pause);
    void wait_until_wanted();
    void name_spinners();
    bool all_sleep_in_verbs();
    bool all_block_in_verbs();
    void name_unarmed();
    [[nodiscard]] bool nothing_queued();

    Simulation& simulation_;
    TimeOptions options_;
    std::optional<TurnOrder> turn_order_;  // of the serial schedule
    std::vector<Actor*> candidates_;       // for the next turn
    bool fabric_goes_first_ = false;       // it was chosen, and somebody waits
    std::atomic<std::uint64_t> unlocks_{0};
    std::uint64_t id_;  // never another's in this process
    WorldMutex mutex_;
    std::vector<std::shared_ptr<Actor>> actors_;  // in order; shared with their threads
    // Each actor is in one of these. Time stands while any holds it. Actors that may be passed were
    // found asleep, say, and are looked at again before time moves.
    ActorList holding_;
    ActorList passed_;
    ActorList polling_;   // a completion queue, and noted there
    ActorList watching_;  // something else: they go on after each step
    ActorList turning_;   // nothing: they wait for their turn
    ActorList locked_;    // nothing: they wait for a mutex of the program
    ActorList blocked_;
    ActorList commanding_;
    std::vector<Actor*> draining_;  // of posted_, those that a step takes
    bool someone_leaves_ = false;   // an actor of actors_, perhaps
    Actor* looker_ = nullptr;       // the one that looks at threads while others wait
    std::uint64_t look_ = 0;        // rounds of looks at threads
    EarlyPolls early_polls_;
    std::size_t spinning_ = 0;  // actors that watch their word on a processor
    const Processors processors_;
    std::uint32_t next_rank_ = 0;
    std::uint64_t events_before_actors_;  // of the bring-up of the fabric
    std::uint32_t callers_ = 0;           // actors that have called something
    std::uint32_t expected_callers_ = 0;  // before time may move
    // Threads look at these without the lock, so no other data is in their cache lines, and what
    // seldom changes is apart from what often does.
    alignas(64) std::atomic<bool> several_actors_{false};
    std::atomic<bool> has_others_{false};    // more actors than one exist, under any schedule
    std::atomic<bool> nothing_left_{false};  // free: no event was pending after the last poll
    std::atomic<bool> crowded_{false};       // free: more threads were awake than processors exist
    std::atomic<Actor*> leader_{nullptr};    // the one that led last; changed with the lock
    std::atomic<bool> helper_wanted_{false};
    alignas(64) std::atomic<Actor*> posted_{nullptr};  // those that rang since the last step
    alignas(64) std::atomic<std::uint64_t> deliveries_{0};
    alignas(64) std::atomic<std::uint64_t> turn_{1};  // grows whenever everyone waits
    std::uint64_t looks_asked_ = 0;       // of deliveries_, that nothing was delivered by
    std::uint64_t polled_after_ = 0;      // free: what had happened when pollers last had to look
    std::uint64_t event_deliveries_ = 0;  // of them, to descriptors
    std::uint64_t noticed_ = 0;           // of those, by those who block
    std::uint64_t steps_ = 0;
    std::vector<Actor*> by_rank_;
    std::vector<Actor*> news_;      // pollers that have some
    std::vector<Actor*> released_;  // those that a step lets go on
    bool news_for_all_ = false;     // since the last step: something that any poller may look at
    // Both are of the last look at everybody.
    Actor* sleeps_for_time_ = nullptr;  // one that does
    Actor* spinner_ = nullptr;          // one that spins, and was passed
    Pace pace_;
    RunMarks marks_;
    StallWatch stall_watch_;
    int looks_at_unarmed_ = 0;  // in a row that found everyone asleep beside completions
    bool named_unarmed_ = false;

    std::once_flag helper_started_;
    std::thread helper_;
    std::atomic<bool> report_wanted_{false};
    std::function<void()> before_report_;
    std::vector<const std::string*> waits_;
    std::atomic<bool> stop_{false};  // of the helper; set with the lock
    std::mutex stop_mutex_;
    std::condition_variable stopped_;
};

}  // namespace simverbs
