// A command of `simverbs`, or some that belong together.
#pragma once

namespace simverbs::cli {

class Command {
  public:
    Command() = default;
    virtual ~Command() = default;
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    // Returns true if the command line asks for it.
    [[nodiscard]] virtual bool is_chosen() const = 0;
    // Does it; an exit status of exit_status.hpp.
    [[nodiscard]] virtual int run() = 0;
};

}  // namespace simverbs::cli
