// `simverbs scenario`: files that say what happens, what goes wrong and what must come of it.
// `simverbs explain`: why something in a trace failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

#include "scenarios/engine/run_files.hpp"

namespace simverbs::cli {

class ScenarioCommands final : public Command {
  public:
    explicit ScenarioCommands(CLI::App& app);

    [[nodiscard]] bool is_chosen() const override;
    [[nodiscard]] int run() override;

  private:
    [[nodiscard]] int run_files() const;
    [[nodiscard]] int print_files() const;
    [[nodiscard]] int print_lumina() const;
    [[nodiscard]] int explain() const;

    CLI::App* scenario_;
    CLI::App* explain_;
    std::vector<std::string> files_;
    std::vector<std::string> settings_;
    scenarios::RunFiles run_files_;
    std::string lumina_file_;
    std::string junit_file_;
    std::string json_file_;
    unsigned jobs_ = 1;
    bool print_ = false;
    bool schema_ = false;
    bool quiet_ = false;
    bool strict_ = false;
    std::string explained_;
    std::string node_;
    std::optional<std::uint32_t> request_;
    std::optional<std::uint32_t> queue_pair_;
};

}  // namespace simverbs::cli
