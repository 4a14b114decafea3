// `simverbs topology`: looks at a topology without serving it.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class TopologyCommands final : public Command {
  public:
    // Adds the words to `app`, which outlives it.
    explicit TopologyCommands(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    // A topology that has mistakes is kFailed to `check`, kUsage to the others.
    [[nodiscard]] int run() override;

  private:
    CLI::App* add(const char* name, const char* help);

    std::string topology_;
    CLI::App* command_;
    CLI::App* check_;
    CLI::App* show_;
    CLI::App* convert_;
    std::string format_ = "yaml";
    bool routes_ = false;
    bool dot_ = false;
    bool as_json_ = false;
};

}  // namespace simverbs::cli
