// `simverbs doctor`: looks at the machine, and says what to do.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class DoctorCommand final : public Command {
  public:
    // Adds itself to `app`, which outlives it. `program` has the words of a program to look at.
    DoctorCommand(CLI::App& app, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    CLI::App* command_;
    std::vector<std::string> program_;
    bool as_json_ = false;
};

}  // namespace simverbs::cli
