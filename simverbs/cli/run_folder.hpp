// The folder for the socket of a world that one command serves, and the process groups of its
// programs. A guard, a process of its own, waits for the end of the command, however it comes, then
// kills the groups and removes the folder.
#pragma once

#include <string>

#include <sys/types.h>

namespace simverbs::cli {

class RunFolder {
  public:
    // Makes the folder and starts the guard: to be made before any thread. Removes the folders of
    // runs that were killed with their guards.
    RunFolder();
    // Returns once the guard has done its work.
    ~RunFolder();
    RunFolder(const RunFolder&) = delete;
    RunFolder& operator=(const RunFolder&) = delete;

    // Why there is none; "" where there is.
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] std::string socket() const { return path_ + "/world.sock"; }

    // A process group that a child of this process leads: killed at the end, if it still exists.
    void add_group(pid_t leader) const;
    [[nodiscard]] bool is_guard(pid_t process) const { return process == guard_; }

  private:
    std::string path_;
    std::string error_;
    int lock_ = -1;  // of the folder; the guard has it, too
    int to_guard_ = -1;
    pid_t guard_ = -1;
};

}  // namespace simverbs::cli
