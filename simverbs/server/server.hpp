// The served world: one thread that owns a simulation, serves client processes and moves time.
//
// It trusts nothing that clients say or share, and a client that dies or stalls disturbs nobody
// else. Schedules are those of DESIGN section 4, with the clients' threads as actors.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/outcome.hpp"

#include "simverbs/faults/fault_board.hpp"
#include "simverbs/outlets/trace_outlets.hpp"
#include "simverbs/server/call_streams.hpp"
#include "simverbs/server/device_files.hpp"
#include "simverbs/server/expected_programs.hpp"
#include "simverbs/server/fabric_requests.hpp"
#include "simverbs/server/host_processes.hpp"
#include "simverbs/server/remote_client.hpp"
#include "simverbs/server/server_options.hpp"
#include "simverbs/server/world_place.hpp"
#include "simverbs/simverbs.h"
#include "simverbs/threads/processors.hpp"
#include "simverbs/time/pace.hpp"
#include "simverbs/time/rule.hpp"
#include "simverbs/time/stall_watch.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class Server {
  public:
    // Listens from here on.
    static fabric::Outcome<std::unique_ptr<Server>> make(const ServerOptions& options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Serves until stop() or a client's shutdown request.
    void run();
    // From any thread or signal handler.
    void stop();

    [[nodiscard]] bool has_host(const std::string& name) const {
        return simulation_->network().find_host(name) != nullptr;
    }

    // Before run(): a fault, from the beginning of the world on. Why it cannot be; "" and its
    // number where it is.
    [[nodiscard]] std::string inject(const simverbs_fault& fault, std::uint32_t& id);
    // As simverbs_fault_matched(). Nothing: no such fault. Only while the server does not run.
    [[nodiscard]] std::optional<std::uint64_t> fault_matched(std::uint32_t id) const;
    // Before run(): so many programs will be started for this world, and time waits for those that
    // are on their way to it.
    void expect_programs(std::size_t count) { expected_.expect(count); }
    // From any thread: one of them, as the kernel numbers its process.
    void program_started(pid_t process, const std::string& host) {
        expected_.started(process, host);
    }
    // Returns true if it, or what it has started, is attached.
    [[nodiscard]] bool has_attached(pid_t program) { return expected_.has_attached(program); }
    // Before run(): each record of the trace, in run()'s thread.
    void listen(TraceOutlets::Listener listener) { traces_.listen(std::move(listener)); }
    [[nodiscard]] const fabric::Network& network() const { return simulation_->network(); }

    // After run(): how it went.
    [[nodiscard]] std::string summary() const;
    // After run(): a sentence for each file of the trace, the capture or coverage that is cut.
    [[nodiscard]] std::vector<std::string> incomplete_files() const { return traces_.incomplete(); }
    [[nodiscard]] fabric::SimTime now() const { return simulation_->loop().now(); }
    [[nodiscard]] std::uint64_t run_digest() const { return simulation_->bus().run_digest(); }
    [[nodiscard]] const RunMarks& marks() const { return marks_; }

  private:
    Server(const ServerOptions& options, std::unique_ptr<Simulation> simulation,
           std::unique_ptr<WorldPlace> place);
    // outlet_files.cpp: returns which file cannot be written, and why; else "".
    std::string open_outlets();

    // server.cpp: clients.
    // Returns true if anybody has come, was answered, or has asked for something.
    bool serve_sockets(int timeout_ms);
    void watch_wake_ups(int descriptor);
    bool accept_client();
    [[nodiscard]] int accept_by_spare();
    void complain(const std::string& what);
    void greet(int socket);
    void serve_device(int socket, const DeviceRequest& request);
    void shut_down(int socket, const ShutdownRequest& request);
    void watch_sockets_of_devices();
    void attach(int socket, const AttachRequest& request);
    bool serve_client(RemoteClient& client);
    void answer(RemoteClient& client, const CommandRequest& request);
    void remove_gone();
    void remove_killed();
    [[nodiscard]] std::string status(bool verbose) const;
    [[nodiscard]] std::string status_as_json() const;
    struct User {
        pid_t process;
        std::string host;
    };
    [[nodiscard]] std::vector<User> users() const;
    [[nodiscard]] std::string name_users() const;
    [[nodiscard]] bool shut_down_asked() const { return stop_.load(std::memory_order_relaxed); }

    // time.cpp: what moves.
    bool drain_doorbells();
    bool ring_doorbells(RemoteClient& client);
    bool ring_for_a_while(RemoteClient& client);
    [[nodiscard]] bool posts_too_much();
    void merge_calls();
    bool move_time();
    class View;
    bool pollers_must_look();
    bool move_freely(Move move);
    std::size_t walk_an_instant(fabric::SimTime& latest);
    bool move_in_turn(Decision decision);
    [[nodiscard]] bool pace_allows();
    bool take_what_waits();
    [[nodiscard]] std::uint64_t deliveries() const;
    bool someone_holds();
    [[nodiscard]] bool step_needs_no_second_look() const;
    [[nodiscard]] std::vector<pid_t> processes_of_clients() const;
    [[nodiscard]] std::vector<pid_t> actor_threads() const;
    // The last look at a single thread counts if it is younger than the interval.
    bool look_at_everyone(std::chrono::nanoseconds interval);
    [[nodiscard]] Whereabouts whereabouts_of(RemoteClient& client, std::uint32_t actor) const;
    Hold judge_actor(RemoteClient& client, std::uint32_t actor, std::chrono::nanoseconds interval);
    void note_signal(RemoteClient& client, std::uint32_t actor);
    void note_nap(RemoteClient& client, std::uint32_t actor);
    bool devices_wait(std::chrono::nanoseconds interval);
    void take_marks(RemoteClient& client);
    void look_at_expected();
    Coming look_at_programs();
    void begin_turn();
    void note_spinner(std::string_view name);
    void note_sleepers(bool walked_for_one);
    // Returns true if what happens next depends on when the server heard of whoever has just come.
    [[nodiscard]] bool is_under_way() const;
    [[nodiscard]] bool nothing_to_come() const;
    Commands commands();
    [[nodiscard]] bool awaits_others(const RemoteClient& client);
    bool run_pending_commands();
    [[nodiscard]] bool is_free() const { return options_.time.schedule == Schedule::kFree; }
    [[nodiscard]] bool doorbells_waiting() const;

    // A thread that was outside the library, on the server's processor, when a yield was long.
    struct Keeper {
        pid_t process;
        std::uint32_t actor;
        std::uint64_t seen;  // by its last poll that had found nothing
        std::int64_t until_ns;
    };
    // idle.cpp: a turn of the loop in which nothing was done. `turns`: how many in a row.
    void be_idle(int& turns);
    bool yield_is_long();
    template <class Holds>
    bool someone_here(Holds holds) const;
    [[nodiscard]] bool someone_here_has_news() const;
    [[nodiscard]] bool is_in_own_code(RemoteClient& client, std::uint32_t actor) const;
    void note_keepers(std::int64_t now_ns);
    [[nodiscard]] bool someone_keeps_processor();
    bool sleep_until_something_happens();
    [[nodiscard]] int longest_sleep_ms() const;

    // polls.cpp: which polls end.
    void note_busy(pid_t process, std::chrono::nanoseconds busy);
    void let_pollers_look();
    void release_pollers(bool anything_happened);
    void release_polls_of(RemoteClient& client, bool all);
    [[nodiscard]] bool next_step_is_far() const;
    bool show_before_jump();

    // stall.cpp: worlds that go nowhere. So many sleeps of a tenth of a second without a call are
    // one.
    static constexpr std::uint32_t kEmptySleeps = 20;
    [[nodiscard]] bool everyone_waits_for_verbs();
    void watch_for_stall(std::size_t events);

    ServerOptions options_;
    std::unique_ptr<Simulation> simulation_;
    TraceOutlets traces_;
    FaultBoard faults_;
    std::unique_ptr<WorldPlace> place_;
    int epoll_;
    int wake_;                     // an eventfd that stop() writes
    std::vector<int> unattached_;  // sockets that are connected and have not sent a request
    DeviceFiles devices_;
    std::vector<std::unique_ptr<RemoteClient>> clients_;  // by host, then as they were started
    HostProcesses processes_;
    ExpectedPrograms expected_;
    std::uint64_t polled_after_ = 0;    // what had happened when pollers last had to look
    std::uint64_t looks_asked_ = 0;     // of them, among their deliveries
    std::uint64_t events_at_rest_ = 0;  // that had run when nobody was here and nothing was to come
    std::uint32_t strangers_ = 0;       // attached without being expected
    std::uint64_t acts_ = 1;            // see ProcessMemory
    CallStreams calls_;
    std::vector<Doorbell> doorbells_;  // these two are kept for their storage
    std::vector<Doorbell> by_queue_;
    bool someone_gone_ = false;
    int turns_without_look_ = 0;  // at the sockets
    std::vector<Keeper> keepers_;
    int holds_by_news_ = 0;
    int spare_ = -1;  // given up for a connection when no descriptor is left
    int complaints_left_ = 100;
    Pace pace_;
    StallWatch stall_watch_{kEmptySleeps};
    // Both are of the last look at everybody.
    std::string sleeps_for_time_;  // the host of a thread that does
    bool someone_spins_ = false;
    std::string spinner_;  // names it, until the run is marked
    bool someone_was_looked_at_ = false;
    std::chrono::nanoseconds busy_{};  // of those that run, the longest: see EarlyPolls
    const Processors processors_;
    bool stands_ = false;      // canonical: somebody runs
    std::uint64_t steps_ = 0;  // canonical
    RunMarks marks_;
    FabricRequests fabric_;
    std::atomic<bool> stop_{false};
};

}  // namespace simverbs
