// Programs that somebody starts on purpose for this world, from before they attach: time waits for
// one that is on its way, as it does for a thread that was created and has called nothing yet.
//
// A program is a process with all that it has started: a shell, say, or the children of a process
// that uses verbs. Those that are attached are what their threads are. Each of the others counts
// as an actor with one thread, before it attaches and after it has left. One that has started an
// attached process (a shell, mpirun) passes whenever it sleeps, with or without a time limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "simverbs/server/process_family.hpp"
#include "simverbs/threads/thread_watch.hpp"

namespace simverbs {

class ExpectedPrograms {
  public:
    // How many there will be; before the world is served.
    void expect(std::size_t count) { not_started_ = count; }
    // Adds one of them, which runs on that host. Any thread may call it.
    void started(pid_t process, const std::string& host);

    // Looks at all processes that are not among `attached`.
    void look(const std::vector<pid_t>& attached, std::chrono::nanoseconds spin_limit);
    // The findings of a look.
    struct Found {
        ThreadState state = ThreadState::kEnded;  // of the least idle process
        std::string spinner;                      // names a process that spins, "": none does
    };
    Found of_all();
    // The same of programs that may use the same devices as that process: those of its host, and
    // its own.
    Found beside(pid_t process, const std::string& host);

    // Says that time has moved since the look, or that a process has given a command. A process
    // that sleeps with a time limit meanwhile, and all that it starts later, comes late.
    void time_passed();
    void command_passed(pid_t process, const std::string& host);

    struct Arrival {
        // Orders the processes of all programs as they were created: the same in each run. Empty:
        // it belongs to none of them.
        std::vector<std::uint32_t> place;
        bool is_late = false;
    };
    // That process attaches.
    Arrival attaches(pid_t process);
    [[nodiscard]] bool has_attached(pid_t program);
    [[nodiscard]] bool empty();

  private:
    struct Member {
        Member(pid_t process, pid_t its_parent) : parent(its_parent), watch(process, process) {}
        pid_t parent;
        ThreadWatch watch;
        std::vector<std::uint32_t> place;
        std::uint32_t children = 0;  // found so far
        bool is_attached = false;
        bool has_started_attached = false;
        bool sleeps_for_time = false;  // at the last look
        bool comes_late = false;
    };
    struct Program {
        pid_t process = 0;
        std::string host;
        std::uint32_t number = 0;
        pid_t attached = 0;               // a process of it that was attached at the last look
        std::map<pid_t, Member> members;  // itself and all that it has started
        Found found;
        bool sleeps_on = false;  // none of it wakes before another one ends or attaches
        bool has_ended = false;
        [[nodiscard]] bool is_beside(pid_t other, const std::string& its_host) const {
            return its_host == host || members.contains(other);
        }
    };
    static void find_members(Program& program);
    static void note_attached(Program& program, const std::vector<pid_t>& attached);
    bool may_have_grown();
    static void look_at(Program& program, std::chrono::nanoseconds spin_limit);
    static void pass(Program& program);
    static void add(Found& sum, const Found& one);

    std::mutex mutex_;
    std::size_t not_started_ = 0;
    std::uint32_t programs_made_ = 0;
    std::vector<Program> programs_;
    NewProcesses new_processes_;
    // All three are of the last look.
    std::vector<pid_t> attached_;
    std::int64_t looked_at_ns_ = 0;
    bool someone_ran_ = true;
};

}  // namespace simverbs
