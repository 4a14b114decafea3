// The terminal on which a command was started, lent to the programs that it runs in process groups
// of their own, one at a time: to whichever reads from it first, as a shell does in the foreground.
#pragma once

#include <sys/types.h>

namespace simverbs::cli {

class LentTerminal {
  public:
    // Takes the terminal of the standard input, if that is one.
    LentTerminal();
    // Takes it back.
    ~LentTerminal();
    LentTerminal(const LentTerminal&) = delete;
    LentTerminal& operator=(const LentTerminal&) = delete;

    // The group that has it; 0: this process's own, or there is no terminal.
    [[nodiscard]] pid_t holder() const { return holder_; }
    // Gives it to a group that waits for it, and lets the group go on. False: somebody else has it.
    bool lend(pid_t group);
    void take_back();

  private:
    [[nodiscard]] bool give(pid_t group) const;
    int descriptor_;
    pid_t holder_ = 0;
};

}  // namespace simverbs::cli
