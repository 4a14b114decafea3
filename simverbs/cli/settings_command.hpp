// `simverbs settings`: the settings of a world, and what the environment has of them.
#pragma once

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class SettingsCommand final : public Command {
  public:
    explicit SettingsCommand(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    CLI::App* command_;
    bool as_markdown_ = false;
    bool as_json_ = false;
};

}  // namespace simverbs::cli
