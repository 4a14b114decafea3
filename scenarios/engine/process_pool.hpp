// Pieces of work, each in a process of its own that is forked from this one: several at once, each
// with a limit of wall time. What a piece leaves behind is a text. Knows nothing of scenarios.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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
    using Work = std::function<std::string(Reached&)>;
    // Returns true if to go on; called a few times a second while work runs.
    using Look = std::function<bool(std::int64_t reached)>;

    static constexpr std::chrono::milliseconds kNoLimit = std::chrono::milliseconds::max();

    // `jobs` from 1 on; `limit` of each piece, after which its process is killed.
    explicit ProcessPool(unsigned jobs, std::chrono::milliseconds limit = kNoLimit, Look look = {});
    // Kills those that have not ended.
    ~ProcessPool();
    ProcessPool(const ProcessPool&) = delete;
    ProcessPool& operator=(const ProcessPool&) = delete;

    [[nodiscard]] bool is_full() const { return children_.size() >= jobs_; }
    [[nodiscard]] bool is_idle() const { return children_.empty() && refused_.empty(); }
    // Work that cannot be started is among the next that are done, with an error.
    void start(std::size_t id, const Work& work);
    // Waits until a piece has ended; all that have. None: the pool is idle, or stopped. Where
    // `look` has just said so, what the pieces left that were asked to end.
    std::vector<Done> wait();
    // Returns true if `look` has said so: nothing runs any more, and nothing should be started.
    [[nodiscard]] bool is_stopped() const { return stopped_; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Child {
        std::size_t id;
        pid_t process;
        int results;  // ends with its life
        Reached* reached;
        std::string text;
        Clock::time_point started;
        bool late = false;
    };

    static Done finish(Child& child);
    // Takes what the piece has written; false: it has ended.
    static bool read_some(Child& child);
    [[nodiscard]] std::int64_t reached() const;
    // Asks all to end, waits for them a little, and kills the rest. Returns what they left.
    std::vector<Done> stop();
    // Until the next process is late, in milliseconds as poll() takes them.
    [[nodiscard]] int patience() const;
    void kill_late();

    unsigned jobs_;
    std::chrono::milliseconds limit_;
    Look look_;
    Reached* meters_;  // one a job, shared with the processes; null where there is no memory
    bool stopped_ = false;
    std::vector<Child> children_;
    std::vector<Done> refused_;
};

}  // namespace scenarios
