#include "simverbs/cli/lent_terminal.hpp"

#include <csignal>
#include <utility>

#include <unistd.h>

namespace simverbs::cli {

LentTerminal::LentTerminal() : descriptor_(isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : -1) {}

LentTerminal::~LentTerminal() {
    take_back();
}

bool LentTerminal::lend(pid_t group) {
    if (descriptor_ < 0 || holder_ != 0 || tcgetpgrp(descriptor_) != getpgrp() || !give(group)) {
        return false;
    }
    holder_ = group;
    kill(-group, SIGCONT);
    return true;
}

void LentTerminal::take_back() {
    if (std::exchange(holder_, 0) != 0) {
        static_cast<void>(give(getpgrp()));
    }
}

// Blocks SIGTTOU, which would stop this process if it is in the background.
bool LentTerminal::give(pid_t group) const {
    sigset_t output;
    sigset_t before;
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &output, &before);
    const bool given = tcsetpgrp(descriptor_, group) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return given;
}

}  // namespace simverbs::cli
