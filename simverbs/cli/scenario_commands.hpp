// `simverbs scenario`: files that say what happens, what goes wrong and what must come of it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

class ScenarioCommands {
  public:
    explicit ScenarioCommands(CLI::App& app);
    ScenarioCommands(const ScenarioCommands&) = delete;
    ScenarioCommands& operator=(const ScenarioCommands&) = delete;

    [[nodiscard]] bool is_chosen() const;
    [[nodiscard]] int run() const;

  private:
    [[nodiscard]] int run_files() const;
    [[nodiscard]] int print_files() const;

    CLI::App* scenario_;
    std::vector<std::string> files_;
    std::vector<std::string> settings_;
    std::string trace_file_;
    std::string junit_file_;
    std::string json_file_;
    unsigned jobs_ = 1;
    bool print_ = false;
    bool schema_ = false;
    bool quiet_ = false;
};

}  // namespace simverbs::cli
