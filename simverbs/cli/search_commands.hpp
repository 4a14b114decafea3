// `simverbs check`: whether runs repeat themselves. `simverbs sweep`: a scenario with many seeds.
// `simverbs shrink`: one that fails, made small.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

#include "scenarios/search/check.hpp"
#include "scenarios/search/shrink.hpp"
#include "scenarios/search/sweep.hpp"

namespace simverbs::cli {

class SearchCommands final : public Command {
  public:
    // `program`: what stood behind "--" on the command line, for check.
    SearchCommands(CLI::App& app, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override;
    [[nodiscard]] int run() override;

  private:
    void add_check(CLI::App& app);
    void add_scenario(CLI::App& command);
    void add_sweep(CLI::App& app);
    void add_shrink(CLI::App& app);
    [[nodiscard]] int check();
    [[nodiscard]] int sweep();
    [[nodiscard]] int shrink();

    std::vector<std::string> program_;
    CLI::App* check_ = nullptr;
    std::vector<std::string> checked_;
    scenarios::CheckOptions check_options_;
    bool quiet_ = false;
    CLI::App* sweep_ = nullptr;
    CLI::App* shrink_ = nullptr;
    std::string file_;
    scenarios::SweepOptions sweep_options_;
    scenarios::SwarmOptions swarm_options_;
    bool swarm_ = false;
    std::string shard_;
    scenarios::ShrinkOptions shrink_options_;
    std::string small_file_;
};

}  // namespace simverbs::cli
