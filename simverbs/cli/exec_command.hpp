// `simverbs exec`: becomes a program that has a world of its own within its process, with options
// for the settings that it would otherwise take from the environment.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class ExecCommand final : public Command {
  public:
    // Adds itself to `app`, which outlives it. `program` has the words of the program.
    ExecCommand(CLI::App& app, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    // Returns only when the program is not started.
    [[nodiscard]] int run() override;

  private:
    void place_settings() const;

    CLI::App* command_;
    std::vector<std::string> program_;
    std::vector<std::string> given_;  // by the row of the table; "": no option
};

}  // namespace simverbs::cli
