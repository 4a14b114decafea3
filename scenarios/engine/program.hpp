// Programs: their operations carried out, one after another, until one has to wait. Who waits for a
// completion or a time goes on when it comes, who waits for something else is asked again after
// each step. One thread, one order: programs run in the order of their names' writing, so that a
// run repeats itself without any help.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/judge.hpp"
#include "scenarios/engine/world.hpp"

namespace scenarios {

class Programs {
  public:
    Programs(const Scenario& scenario, World& world, Faults& faults, Judge& judge);
    ~Programs();

    struct Limits {
        std::int64_t stop;             // virtual time
        bool ends_in_endless_retries;  // where nothing but RNR retries without end is left
        const volatile std::sig_atomic_t* interrupted_by = nullptr;  // null: nobody interrupts it
    };
    // Until all have ended, nothing is left to happen, or a limit is reached.
    void run(const Limits& limits, std::atomic<std::int64_t>* reached = nullptr);
    // "h0 waits at line 5: poll, since 1.2us", a line each.
    [[nodiscard]] std::vector<std::string> waiting() const;
    // A line for each request that was repeated for ever when the run ended for that; else none.
    [[nodiscard]] const std::vector<std::string>& endless_retries() const { return endless_; }

  private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

    struct Frame {
        std::span<const fabric::yaml::Value> operations;
        std::size_t next = 0;
        std::uint64_t round = 0;
        std::uint64_t rounds = 1;
    };
    struct Task {
        std::size_t place;  // in the order
        std::string name;
        Host* host;
        std::vector<Frame> frames;
        Task* parent = nullptr;
        std::size_t children = 0;  // that have not ended
        // The operation under way.
        std::optional<std::int64_t> since{};
        bool begun = false;
        std::int64_t deadline = 0;
        std::uint64_t got = 0;
    };
    // It waits for anything, for a completion, or for its deadline alone.
    enum class Outcome : std::uint8_t { kDone, kWaits, kWaitsForCompletion, kSleeps };

    Task& add(std::string name, Host* host, std::span<const fabric::yaml::Value> operations);
    bool advance_all();        // one after another; false: none could go on
    bool advance(Task& task);  // false: it waits, or has ended
    void wait(Task& task, Outcome outcome);
    void wake();
    // Returns true if nothing happens any more but retries without end; keeps what they are.
    bool finds_endless_retries(std::int64_t stop);
    Outcome execute(Task& task, const fabric::yaml::Entry& operation);
    [[nodiscard]] std::string destroyed_object(Task& task, std::string_view operation,
                                               Checked body);
    void do_at_once(Task& task, const std::string& name, Checked body);
    Outcome enter(Task& task, std::span<const fabric::yaml::Value> operations,
                  std::uint64_t rounds);
    Outcome fork(Task& task, Checked lists);
    Outcome poll(Task& task, Checked body);
    Outcome sleep(Task& task, std::int64_t duration);
    Outcome wait_event(Task& task, Checked body);
    Outcome await(Task& task, Checked body);
    // By rdma_cm (cm_operations.cpp).
    Outcome by_cm(Task& task, const std::string& name, Checked body);
    Outcome begin_by_cm(Task& task, Checked body, End& end, bool joins);
    Outcome answer_by_cm(Task& task, Checked body, End& end, bool accepts);
    Outcome await_outcome(Task& task, Checked body, const End& end, std::string_view otherwise);
    Outcome await_cm(Task& task, Checked body);
    void receive(Task& task, Checked body);
    void send(Task& task, Checked body, std::string_view operation);
    void bind(Task& task, Checked body);
    void local_invalidate(Task& task, Checked body);
    void modify(Task& task, Checked body);
    void arm(Task& task, Checked body);
    void reconnect(Task& task, Checked body);
    void destroy(Task& task, Checked body);
    void fill(Task& task, Checked body);
    void limit(Task& task, Checked body);
    void change_gid(Task& task, Checked body);

    void begin_wait(Task& task, std::int64_t within);
    // The answer of a verb against the `errno` of the operation.
    void expect_errno(Checked body, std::string_view verb, int answer);
    [[nodiscard]] bool is_over(const Task& task) const;
    [[nodiscard]] std::uint64_t rounds_before(const Task& task) const;
    [[nodiscard]] CompletionQueue* queue_of(Task& task, Checked body);
    [[nodiscard]] End& end_of(Task& task, Checked body);
    [[nodiscard]] static Memory& memory_of(Host& host, Checked body, std::string_view key);
    [[nodiscard]] std::int64_t next_deadline(std::int64_t stop) const;
    // `end`: that it is about; "": about none.
    void fail(Checked where, std::string expected, std::string happened,
              std::string kind = "operation", std::string end = "");

    World& world_;
    Faults& faults_;
    Judge& judge_;
    std::vector<std::unique_ptr<Task>> tasks_;
    // By their places. Those that may go on, and those that wait for anything.
    std::set<std::size_t> ready_;
    std::set<std::size_t> watching_;
    std::set<std::pair<std::int64_t, std::size_t>> deadlines_;  // of those that wait
    std::uint64_t program_changes_ = 0;                         // of the world, seen
    std::set<std::string, std::less<>> signals_;
    std::vector<std::string> endless_;
};

}  // namespace scenarios
