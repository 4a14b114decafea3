// Several programs, each on a host of one world: started in order, their output prefixed by host,
// ended together.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "fabric/core/outcome.hpp"

#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/lent_terminal.hpp"
#include "simverbs/cli/run_folder.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

struct ProgramSpec {
    std::string host;
    std::string command;  // for /bin/sh
};

// Reads words HOST=COMMAND; the first that is none is an error.
fabric::Outcome<std::vector<ProgramSpec>> programs_of_words(std::span<const std::string> words);

class Programs {
  public:
    // `server` learns of each program. Each leads a process group, which `folder` is told of. Both
    // outlive this.
    Programs(Server& server, const RunFolder& folder, std::vector<ProgramSpec> specs);
    // Kills what still runs, and what programs have left in the background.
    ~Programs();
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;

    // Starts them in order, each once the one before has a listening TCP socket, or sleeps outside
    // the library for 100 ms, or has attached and idles for 1 s, or has used 1 s of processor time;
    // waits for all. Returns the exit status of the first that failed, as a shell gives it; 124
    // when `limit` ran out first. A signal that EndSignals has noted is passed on to all; those
    // that it has not ended a second later, or by the next signal, are killed, and 128 and its
    // number returned.
    int run(std::optional<std::chrono::milliseconds> limit);
    // Before run(): each program that fails is named on stderr, with how it ended.
    void tell_failures() { tells_failures_ = true; }
    // After run(): the exit status of each as a shell gives it, in the order of the specifications.
    [[nodiscard]] std::vector<int> statuses() const;
    // After run(): returns true if the time limit has ended them.
    [[nodiscard]] bool was_late() const { return is_late_; }

  private:
    struct Running {
        std::string host;
        std::string command;
        pid_t process = -1;
        int output = -1;          // its stdout
        int errors = -1;          // its stderr
        std::string output_line;  // not ended yet
        std::string error_line;
        std::optional<int> status;
        bool wants_terminal = false;  // stopped until it has it
    };
    void start(const ProgramSpec& spec);
    void tell_if_unreachable(const std::string& command);
    void wait_until_settled(const Running& program);
    // Passes on what programs print and notes who has ended; waits up to `timeout_ms`.
    void attend(int timeout_ms);
    void pass_on(Running& program, int& descriptor, std::string& line, int to);
    void complain_of_output(int error);
    void look_after(Running& program);
    void stop_with(const Running& program);
    void lend_terminal();
    void pass_on_signal(int signal) const;
    void pass_on_rest();
    void kill_descendants() const;
    void end_all();
    [[nodiscard]] bool all_ended() const;
    [[nodiscard]] std::string names_of_running() const;

    Server& server_;
    const RunFolder& folder_;
    std::vector<ProgramSpec> specs_;
    std::size_t prefix_width_ = 0;
    std::vector<Running> programs_;
    std::optional<int> first_failure_;
    std::set<std::string> told_;  // why programs are unreachable: each once
    LentTerminal terminal_;
    bool is_output_lost_ = false;
    bool tells_failures_ = false;
    bool is_late_ = false;
};

}  // namespace simverbs::cli
