// The threads of a process that has devices open (simverbs/server/device_files.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "simverbs/threads/thread_watch.hpp"

namespace simverbs {

// A look at threads, and what it has found.
struct ThreadLook {
    std::chrono::nanoseconds spin_limit;  // these two as with ThreadWatch::look()
    std::chrono::nanoseconds interval;
    bool something_may_come;          // see judge()
    pid_t busy_process = 0;           // of a thread that runs
    std::chrono::nanoseconds busy{};  // ThreadWatch::busy_for() of that
    std::string spinner = {};         // one that is passed though it spins, for messages
};

class WatchedProcess {
  public:
    explicit WatchedProcess(pid_t process) : process_(process) {}

    // Returns true if every thread of it sleeps, except those in `actors` (ascending), which are
    // judged elsewhere. If the process has any of those, another one that spins may be passed, as
    // they may: UCX has a thread that asks its descriptors again and again while another polls.
    bool sleeps(const std::vector<pid_t>& actors, ThreadLook& look);
    // Something lies there for it: it is about to run.
    void expect_wake();

  private:
    void find_threads(std::int64_t now);

    pid_t process_;
    std::map<pid_t, std::unique_ptr<ThreadWatch>> threads_;
    std::uint64_t thread_count_ = 0;  // by the links of the folder that lists them
    std::int64_t looked_for_threads_ns_ = 0;
};

}  // namespace simverbs
