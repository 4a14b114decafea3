// Programs that somebody starts on purpose for this world, from before they attach: time waits for
// one that is on its way, as it does for a thread that was created and has called nothing yet.
//
// A program is a process with all that it has started (a shell, say). While one of these is
// attached, the program is what its threads are; until then, and after, each process of it counts
// as an actor with one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "simverbs/threads/thread_watch.hpp"

namespace simverbs {

// A process and those it has started, as /proc has it.
std::vector<pid_t> family_of(pid_t process);

class ExpectedPrograms {
  public:
    // How many there will be; before the world is served.
    void expect(std::size_t count) { not_started_ = count; }
    // One of them, by any thread.
    void started(pid_t process);

    // Returns the state of the least idle of them; `spinner` takes a name where one spins. Those of
    // which a process is among `attached` wait.
    ThreadState look(const std::vector<pid_t>& attached, std::chrono::nanoseconds spin_limit,
                     std::chrono::nanoseconds interval, std::string& spinner);
    // That process has attached; whether one of them is it, or has started it.
    bool attached(pid_t process);
    [[nodiscard]] bool has_attached(pid_t program);
    [[nodiscard]] bool empty();

  private:
    struct Program {
        pid_t process = 0;
        pid_t attached = 0;  // the process of it that was attached at the last look
        bool has_ended = false;
        std::map<pid_t, ThreadWatch> watches;
    };
    static ThreadState look_at(Program& program, std::chrono::nanoseconds spin_limit,
                               std::chrono::nanoseconds interval, std::string& spinner);

    std::mutex mutex_;
    std::size_t not_started_ = 0;
    std::vector<Program> programs_;
};

}  // namespace simverbs
