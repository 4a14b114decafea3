// `simverbs sweep`: a scenario with many seeds. `simverbs shrink`: one that fails, made small.
#pragma once

#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "scenarios/search/shrink.hpp"
#include "scenarios/search/sweep.hpp"

namespace simverbs::cli {

class SearchCommands {
  public:
    explicit SearchCommands(CLI::App& app);
    SearchCommands(const SearchCommands&) = delete;
    SearchCommands& operator=(const SearchCommands&) = delete;

    [[nodiscard]] bool is_chosen() const;
    [[nodiscard]] int run();

  private:
    void add_sweep(CLI::App& app);
    void add_shrink(CLI::App& app);
    [[nodiscard]] int sweep();
    [[nodiscard]] int shrink();

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
