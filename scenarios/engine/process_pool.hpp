// Pieces of work in processes that are forked from this one: several at once, each with a limit of
// wall time. What a piece leaves behind is a text. Knows nothing of scenarios.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace scenarios {

// How far work of many pieces has come.
struct Stage {
    std::size_t done = 0;  // pieces
    std::size_t all = 0;
    std::int64_t reached = 0;  // by the one piece that runs, in its own measure; 0: by several
};

// Told of a stage a few times a second, and whenever a piece has ended. False: pieces that run are
// ended, and no more are begun.
using Onlooker = std::function<bool(const Stage&)>;

class ProcessPool {
  public:
    struct Done {
        std::size_t id = 0;
        std::string text{};   // what the work returned
        std::string error{};  // why it returned nothing: "its process died of Aborted"
    };
    using Reached = std::atomic<std::int64_t>;  // which its work may set, for onlookers
    using Work = std::function<std::string(std::size_t id, Reached&)>;
    // Returns true if to go on; called a few times a second while work runs.
    using Look = std::function<bool(std::int64_t reached)>;

    static constexpr std::chrono::milliseconds kNoLimit = std::chrono::milliseconds::max();

    struct Options {
        unsigned jobs = 1;                           // from 1 on: processes at once
        std::chrono::milliseconds limit = kNoLimit;  // of each piece: then its process is killed
        // That a process does one after another, from 1 on. Of more than one, each sees what the
        // caller's memory held when the process was forked, and what pieces before it left there.
        // A piece whose process dies after others is done again, in a process of its own.
        std::size_t pieces_of_process = 1;
    };

    // `work` runs in the processes.
    ProcessPool(Work work, const Options& options, Look look = {});
    // Kills those that have not ended.
    ~ProcessPool();
    ProcessPool(const ProcessPool&) = delete;
    ProcessPool& operator=(const ProcessPool&) = delete;

    [[nodiscard]] bool is_full() const { return working() >= options_.jobs; }
    [[nodiscard]] bool is_idle() const { return working() == 0 && refused_.empty(); }
    // A piece that cannot be started is among the next that are done, with an error.
    void start(std::size_t id);
    // Waits until a piece has ended; all that have. None: the pool is idle, or stopped. Where
    // `look` has just said so, what the pieces left that were asked to end.
    std::vector<Done> wait();
    // Returns true if `look` has said so: nothing runs any more, and nothing should be started.
    [[nodiscard]] bool is_stopped() const { return stopped_; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Child {
        std::size_t id;  // of its piece
        pid_t process;   // kGone: it has ended
        int socket;      // takes ids, gives texts, and ends with its life
        Reached* reached;
        Clock::time_point started;
        std::size_t left;  // pieces that it may be given
        bool works = true;
        bool late = false;
        std::string received{};  // of a text, behind its length
    };
    static constexpr pid_t kGone = -1;

    // In the new process.
    [[noreturn]] void work(std::size_t id, int socket, Reached& reached) const;
    [[nodiscard]] std::size_t working() const;
    // Gives the piece to a process that has done one before; false: there is none.
    bool give(std::size_t id);
    // Forks a process for it. Returns 0, or an errno value.
    int add(std::size_t id);
    void add_or_refuse(std::size_t id);
    // Takes what the process has written, and waits for its end where it is the last. Returns the
    // piece that is done, if it is.
    static std::optional<Done> receive(Child& child);
    // Waits for the end of the process. Returns why there is no text of it.
    static std::string finish(Child& child);
    [[nodiscard]] std::int64_t reached() const;
    // Asks all to end, waits for them a little, and kills the rest. Returns what they left.
    std::vector<Done> stop();
    void erase_gone();
    // Until the next process is late, in milliseconds as poll() takes them.
    [[nodiscard]] int patience() const;
    void kill_late();

    Work work_;
    Options options_;
    Look look_;
    Reached* meters_;  // one a job, shared with the processes; null where there is no memory
    bool stopped_ = false;
    std::vector<Child> children_;
    std::vector<Done> refused_;
};

}  // namespace scenarios
