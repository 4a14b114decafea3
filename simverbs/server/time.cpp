// Advances the time of a served world: answers the questions of the rule of time
// (simverbs/time/rule.hpp) for the threads of all clients and carries out its decisions.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "simverbs/server/server.hpp"

namespace simverbs {
namespace {

// Turns of the loop between looks at the sockets: a look is a system call, and commands are rare.
constexpr int kTurnsPerLook = 16;
constexpr int kStepsPerMove = 256;
// Free: how old an answer of /proc may be that a thread runs, or sleeps while others run.
constexpr std::chrono::nanoseconds kLookInterval = std::chrono::microseconds(20);
// Canonical: turns in a row in which what lies in sockets holds time. A program is asked nothing
// more before its command has been carried out, so more is somebody who connects without end.
constexpr int kMostHoldsByNews = 64;
// Free: how long doorbells of one client are rung in a turn; one may be work for thousands of
// requests.
constexpr std::int64_t kRingingNs = 1'000'000;

}  // namespace

void Server::run() {
    int idle = 0;
    while (!shut_down_asked()) {
        bool busy = is_free() && drain_doorbells();
        if (++turns_without_look_ >= kTurnsPerLook) {
            serve_sockets(0);
        }
        busy = move_time() || busy;
        remove_killed();
        if (busy) {
            idle = 0;
        } else {
            be_idle(idle);
        }
    }
    processes_.let_all_go_on();
    for (const auto& client : clients_) {
        take_marks(*client);
    }
    merge_calls();
    traces_.flush();
}

// Posts are merged by host, then by thread of the process, then in their own order; management
// datagrams come before them.
bool Server::drain_doorbells() {
    bool any = devices_.take_written();
    const std::set<pid_t> commanders = devices_.take_commanders();
    for (const auto& client : clients_) {
        if (commanders.contains(client->process())) {
            client->threads_may_have_acted();
            if (is_free()) {
                client->make_pollers_look();
            }
        }
        any = (is_free() ? ring_for_a_while(*client) : ring_doorbells(*client)) || any;
    }
    if (any) {
        stall_watch_.called();
    }
    return any;
}

// Free: a client that rings without end does not keep the turn from the others.
bool Server::ring_for_a_while(RemoteClient& client) {
    const auto redirect = calls_.redirect(client);
    std::int64_t since = 0;  // the second one: most are alone
    bool any = false;
    for (int rung = 0; rung < 2 || wall_ns() - since < kRingingNs; ++rung) {
        doorbells_.clear();
        client.take_doorbells(doorbells_, 1);
        if (doorbells_.empty()) {
            break;
        }
        since = rung == 1 ? wall_ns() : since;
        client.watch_anew(doorbells_[0].actor);
        any = client.ring(doorbells_[0]) || any;
    }
    someone_gone_ = someone_gone_ || !client.why_hung_up().empty();
    return any;
}

// Between two looks of the server nothing completes: a program posts to a queue at most what it
// holds, and once more what had completed before. The limit is twice the largest queue.
bool Server::posts_too_much() {
    constexpr std::size_t kFew = 64;
    constexpr std::uint32_t kMostPosted = 1U << 16;
    if (doorbells_.size() <= kFew) {
        return false;
    }
    const auto queue = [](const Doorbell& doorbell) {
        return std::tuple(doorbell.context, doorbell.qpn, doorbell.queue);
    };
    by_queue_ = doorbells_;
    std::stable_sort(
        by_queue_.begin(), by_queue_.end(),
        [&queue](const Doorbell& a, const Doorbell& b) { return queue(a) < queue(b); });
    std::uint64_t posted = 0;
    for (std::size_t i = 1; i < by_queue_.size(); ++i) {
        const bool same = queue(by_queue_[i]) == queue(by_queue_[i - 1]);
        const std::uint32_t more = by_queue_[i].producer - by_queue_[i - 1].producer;
        posted = same ? posted + more : 0;
        if (posted > kMostPosted) {
            return true;
        }
    }
    return false;
}

bool Server::ring_doorbells(RemoteClient& client) {
    doorbells_.clear();
    client.take_doorbells(doorbells_);
    if (doorbells_.empty()) {
        someone_gone_ = someone_gone_ || !client.why_hung_up().empty();
        return false;
    }
    if (posts_too_much()) {
        client.hang_up("posted more than its queues hold");
        someone_gone_ = true;
        return false;
    }
    std::stable_sort(doorbells_.begin(), doorbells_.end(),
                     [](const Doorbell& a, const Doorbell& b) { return a.actor < b.actor; });
    const auto redirect = calls_.redirect(client);
    bool any = false;
    for (const Doorbell& doorbell : doorbells_) {
        any = client.ring(doorbell) || any;
    }
    someone_gone_ = someone_gone_ || !client.why_hung_up().empty();
    return any;
}

void Server::merge_calls() {
    calls_.merge(simulation_->loop().now());
}

bool Server::doorbells_waiting() const {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& client) {
        const ClientArea& area = client->area();
        return area.doorbell_producer.value.load(std::memory_order_seq_cst) !=
               area.doorbell_consumer.value.load(std::memory_order_relaxed);
    });
}

// Answers the questions of the rule of time for the threads of all clients.
class Server::View {
  public:
    explicit View(Server& server) : server_(server) {}

    [[nodiscard]] Schedule schedule() const { return server_.options_.time.schedule; }
    bool someone_holds() { return server_.someone_holds(); }
    bool take_posts() {
        if (server_.take_what_waits()) {
            return true;
        }
        server_.begin_turn();
        return false;
    }
    Commands commands() { return server_.commands(); }
    [[nodiscard]] bool event_is_left() const { return !server_.simulation_->loop().empty(); }
    Coming coming() { return server_.look_at_programs(); }
    [[nodiscard]] bool someone_sleeps_for_time() const { return !server_.sleeps_for_time_.empty(); }
    [[nodiscard]] bool spinner_may_compute() const {
        return server_.someone_spins_ && server_.simulation_->next_step() >= kLongJump;
    }

  private:
    Server& server_;
};

bool Server::move_time() {
    View view(*this);
    const Decision decision = decide(view);
    stands_ = decision == Decision{Move::kStand, Why::kSomeoneRuns};
    switch (decision.move) {
        case Move::kStand:
            if (stands_) {
                let_pollers_look();
            }
            return false;
        case Move::kLookAgain:
            return true;
        case Move::kCommands:
            return run_pending_commands() || fabric_.run_waiting();
        case Move::kJump:
            if (is_free() ? pollers_must_look() : show_before_jump()) {
                return true;
            }
            break;
        case Move::kDeliver:
        case Move::kWalk:
            break;
    }
    const std::uint64_t before = simulation_->loop().events_run();
    const bool stepped = is_free() ? move_freely(decision.move) : move_in_turn(decision);
    if (stepped && someone_spins_) {
        marks_.set(Mark::kSpunOnMemory, spinner_);
    }
    if (stepped && decision.why != Why::kSomeoneRuns) {
        watch_for_stall(simulation_->loop().events_run() - before);
    }
    return stepped || decision.why == Why::kSomeoneGoesOn;
}

// Makes all that poll look once more before a long jump, unless they have done so and nothing has
// happened since.
bool Server::pollers_must_look() {
    const auto happened = [this] {
        return simulation_->loop().events_run() + deliveries() + devices_.commands_executed();
    };
    if (simulation_->next_step() < kLongJump || happened() == polled_after_) {
        return false;
    }
    for (const auto& client : clients_) {
        client->make_pollers_look();
    }
    looks_asked_ += clients_.size();
    polled_after_ = happened();
    return true;
}

// Runs several steps in a row: actors that were found waiting continue to wait until something is
// delivered or posted, so they need no look after every step.
bool Server::move_freely(Move move) {
    const bool walks = move == Move::kWalk;
    if (!walks) {
        pace_.stop();
    }
    merge_calls();  // those of posts that the rule took, too: before what comes of them
    const std::uint64_t before = deliveries();
    fabric::SimTime latest = simulation_->loop().now();
    bool stepped = false;
    for (int steps = 0; steps < kStepsPerMove && deliveries() == before; ++steps) {
        if ((walks ? walk_an_instant(latest) : simulation_->run_instant()) == 0) {
            break;
        }
        stepped = true;
        if (doorbells_waiting() || (!walks && simulation_->next_step() >= kLongJump)) {
            break;
        }
    }
    simulation_->settle();
    return stepped;
}

// Runs what is due by `latest`. Reads the wall clock only when nothing is.
std::size_t Server::walk_an_instant(fabric::SimTime& latest) {
    const std::size_t events = simulation_->run_instant(latest);
    if (events > 0 || simulation_->loop().empty()) {
        return events;
    }
    latest = pace_.reaches(simulation_->loop().now(), wall_ns());
    return simulation_->run_instant(latest);
}

bool Server::move_in_turn(Decision decision) {
    const bool walks = decision.move == Move::kWalk;
    if (walks && !pace_allows()) {
        return false;
    }
    if (!walks) {
        pace_.stop();
    }
    if (!simulation_->loop().empty()) {
        merge_calls();
    }
    for (const auto& client : clients_) {
        client->early_polls.time_moved();
        client->note_waiting_polls(steps_);
    }
    const bool is_far = next_step_is_far();
    const std::uint64_t records = simulation_->bus().run_records();
    const bool stepped =
        (walks ? simulation_->step_exactly()
               : simulation_->step_to_news([this] { return deliveries(); }, kFarJump,
                                           Simulation::Timers::kAreNone)) > 0;
    if (stepped) {
        note_sleepers(decision.why == Why::kSomeoneSleepsForTime);
    }
    remove_killed();
    release_pollers(!stepped || is_far || simulation_->bus().run_records() != records);
    return stepped;
}

bool Server::pace_allows() {
    const fabric::EventLoop& loop = simulation_->loop();
    return pace_.allows(loop.next_time(), loop.now(), wall_ns());
}

// Whoever waits has posted what it had to post, and what it had to say lies in its socket. True:
// someone may go on by it.
bool Server::take_what_waits() {
    const bool may_have_spoken = someone_was_looked_at_ || !devices_.empty();
    const bool spoke = may_have_spoken && serve_sockets(0);
    // A command comes after what its client posted: a free one, just carried out, has seen to that,
    // and the others wait until this is done.
    const std::uint64_t executed = devices_.commands_executed();
    const bool posted = drain_doorbells();
    if (is_free()) {
        return spoke || posted;  // a client that posts or asks without end counts as running
    }
    const bool answered = devices_.commands_executed() != executed;  // and someone goes on
    holds_by_news_ = spoke ? holds_by_news_ + 1 : 0;
    return answered || (spoke && holds_by_news_ < kMostHoldsByNews);
}

std::uint64_t Server::deliveries() const {
    std::uint64_t sum = devices_.deliveries();
    for (const auto& client : clients_) {
        sum += client->deliveries();
    }
    return sum;
}

std::vector<pid_t> Server::processes_of_clients() const {
    std::vector<pid_t> processes;
    for (const auto& client : clients_) {
        processes.push_back(client->process());
    }
    return processes;
}

// Ascending. The others of their processes are watched as those of programs without verbs are.
std::vector<pid_t> Server::actor_threads() const {
    std::vector<pid_t> threads;
    for (const auto& client : clients_) {
        for (std::uint32_t actor = 0; actor < client->actor_count(); ++actor) {
            const ActorSlot& slot = client->area().actors[actor];
            threads.push_back(static_cast<pid_t>(slot.thread.load(std::memory_order_acquire)));
        }
    }
    std::sort(threads.begin(), threads.end());
    return threads;
}

// One that was found asleep may have been woken since by one that was found waiting after it. A
// second look, made when all wait, tells: who sleeps, and has not run between the two, slept all
// the while. Under the free schedule it is made before a long jump: a step that is made by mistake
// is less than a thread may take to run.
bool Server::someone_holds() {
    someone_was_looked_at_ = false;
    if (!look_at_everyone(is_free() ? kLookInterval : std::chrono::nanoseconds::zero())) {
        return true;
    }
    return (someone_was_looked_at_ || !devices_.empty()) && !step_needs_no_second_look() &&
           !look_at_everyone(std::chrono::nanoseconds::zero());
}

bool Server::step_needs_no_second_look() const {
    return is_free() && !simulation_->loop().empty() && simulation_->next_step() < kLongJump;
}

bool Server::look_at_everyone(std::chrono::nanoseconds interval) {
    sleeps_for_time_.clear();
    someone_spins_ = false;
    busy_ = std::chrono::nanoseconds::zero();
    for (const auto& client : clients_) {
        client->busy.reset();
    }
    bool all = processes_.have_stopped();
    std::size_t polling = 0;
    for (const auto& client : clients_) {
        const std::uint32_t known = client->known_actors();
        const std::uint32_t actors = client->actor_count();
        all = all && (is_free() || !client->is_about_to_name_threads());
        for (std::uint32_t actor = 0; actor < actors; ++actor) {
            polling += client->is_in_poll(actor) ? 1 : 0;
            const bool in_time = client->is_announced(actor) && client->named_threads_in_time();
            if (actor >= known && !in_time && is_under_way()) {
                marks_.set(Mark::kCameLate, client->describe(actor));
            }
            all = judge_actor(*client, actor, interval) != Hold::kHolds && all;
        }
    }
    for (const auto& client : clients_) {
        client->note_crowd(polling > processors_.count());
    }
    return all && (devices_.empty() || devices_wait(interval));
}

void Server::look_at_expected() {
    std::vector<pid_t> here = processes_of_clients();
    devices_.add_processes(here);
    expected_.look(here, options_.time.spin_limit);
}

// Everyone who is attached waits; programs that are on their way here may yet run.
Coming Server::look_at_programs() {
    if (expected_.empty()) {
        return Coming::kNobody;
    }
    look_at_expected();
    const auto [state, spinner] = expected_.of_all();
    // One that sleeps may wait for an answer to what lies in its socket here, to attach, say; or it
    // may have woken somebody by a message of its own. Whoever is found in a poll may have posted
    // just now: a timer has woken it, say.
    if (state == ThreadState::kRuns || serve_sockets(0) ||
        (!step_needs_no_second_look() && !look_at_everyone(std::chrono::nanoseconds::zero())) ||
        doorbells_waiting()) {
        return Coming::kHolds;
    }
    if (!spinner.empty()) {
        note_spinner(spinner);
    }
    if (state == ThreadState::kAsleepForTime) {
        sleeps_for_time_ = "a program that has not attached yet";
        return Coming::kSleepForTime;
    }
    return Coming::kNobody;
}

bool Server::nothing_to_come() const {
    return simulation_->loop().empty() && !doorbells_waiting() &&
           std::none_of(clients_.begin(), clients_.end(),
                        [](const auto& client) { return client->pending.has_value(); });
}

// Commands of processes of one host get its handles and QPNs in the order of execution. So a
// command waits for programs on their way that may attach there, or were started by the same one.
Commands Server::commands() {
    const auto has_one = [](const auto& client) { return client->pending.has_value(); };
    const bool any = std::any_of(clients_.begin(), clients_.end(), has_one);
    if (!any) {
        return fabric_.is_asked() ? Commands::kCanRun : Commands::kNone;
    }
    if (!expected_.empty()) {
        look_at_expected();
        if (serve_sockets(0)) {
            return Commands::kAwaitOthers;  // one that was found asleep has spoken: look again
        }
    }
    const bool can_run =
        fabric_.is_asked() || std::any_of(clients_.begin(), clients_.end(), [&](const auto& each) {
            return has_one(each) && !awaits_others(*each);
        });
    return can_run ? Commands::kCanRun : Commands::kAwaitOthers;
}

bool Server::awaits_others(const RemoteClient& client) {
    const auto [state, spinner] = expected_.beside(client.process(), client.host());
    if (!spinner.empty()) {
        marks_.set(Mark::kSpunOnMemory, spinner);
    }
    return state == ThreadState::kRuns;
}

bool Server::run_pending_commands() {
    bool any = false;
    for (const auto& client : clients_) {
        if (client->pending && !awaits_others(*client)) {
            expected_.command_passed(client->process(), client->host());
            const CommandRequest request = *client->pending;
            client->pending.reset();
            answer(*client, request);
            any = true;
        }
    }
    return any;
}

// Calls that threads of one process made before come before those from here on.
void Server::begin_turn() {
    for (const auto& client : clients_) {
        client->begin_turn();
    }
}

// Time has moved: who slept for a time, or for a signal, may go on at another instant next time.
void Server::note_sleepers(bool walked_for_one) {
    if (walked_for_one) {
        marks_.set(Mark::kSleptForTime, sleeps_for_time_);
    }
    for (const auto& client : clients_) {
        client->time_passed();
    }
    expected_.time_passed();
}

bool Server::is_under_way() const {
    return simulation_->loop().events_run() != events_at_rest_;
}

}  // namespace simverbs
