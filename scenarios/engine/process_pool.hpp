// Pieces of work, each in a process of its own that is forked from this one: several at once, each
// with a limit of wall time. What a piece leaves behind is a text. Knows nothing of scenarios.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace scenarios {

class ProcessPool {
  public:
    struct Done {
        std::size_t id = 0;
        std::string text{};   // what the work returned
        std::string error{};  // why it returned nothing: "its process died of Aborted"
    };
    using Work = std::function<std::string()>;

    static constexpr std::chrono::milliseconds kNoLimit = std::chrono::milliseconds::max();

    // `jobs` from 1 on; `limit` of each piece, after which its process is killed.
    explicit ProcessPool(unsigned jobs, std::chrono::milliseconds limit = kNoLimit);
    // Kills those that have not ended.
    ~ProcessPool();
    ProcessPool(const ProcessPool&) = delete;
    ProcessPool& operator=(const ProcessPool&) = delete;

    [[nodiscard]] bool is_full() const { return children_.size() >= jobs_; }
    [[nodiscard]] bool is_idle() const { return children_.empty() && refused_.empty(); }
    // What cannot be started is among the next that are done, with an error.
    void start(std::size_t id, const Work& work);
    // Waits until a piece has ended; all that have. None: the pool is idle.
    std::vector<Done> wait();

  private:
    using Clock = std::chrono::steady_clock;
    struct Child {
        std::size_t id;
        pid_t process;
        int results;  // ends with its life
        std::string text;
        Clock::time_point started;
        bool late = false;
    };

    static Done finish(Child& child);
    // Until the next process is late, in milliseconds as poll() takes them.
    [[nodiscard]] int patience() const;
    void kill_late();

    unsigned jobs_;
    std::chrono::milliseconds limit_;
    std::vector<Child> children_;
    std::vector<Done> refused_;
};

}  // namespace scenarios
