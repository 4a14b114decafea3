// `simverbs run`: serves a world, runs programs on its hosts, and ends it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"
#include "simverbs/cli/programs.hpp"
#include "simverbs/cli/world_options.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

class RunCommand final : public Command {
  public:
    // Adds itself to `app`, which outlives it.
    explicit RunCommand(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    [[nodiscard]] int run_scenario(std::vector<ProgramSpec> programs) const;
    [[nodiscard]] int run_topology(std::vector<ProgramSpec> programs);

    CLI::App* command_;
    ServerOptions server_;
    std::vector<std::string> words_;  // TOPOLOGY, unless there is a scenario; HOST=COMMAND ...
    ScenarioChoice scenario_;
    std::chrono::milliseconds limit_{0};  // 0: none
    bool quiet_ = false;
};

}  // namespace simverbs::cli
