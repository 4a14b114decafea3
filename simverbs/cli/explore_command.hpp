// `simverbs explore`: every fault at every place of a run.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"
#include "simverbs/cli/progress.hpp"

#include "scenarios/explore/explored.hpp"

namespace simverbs::cli {

class ExploreCommand final : public Command {
  public:
    // `program`: what stood behind "--" on the command line.
    ExploreCommand(CLI::App& app, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override { return explore_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    // nullptr: there is none, which it has said.
    [[nodiscard]] std::unique_ptr<scenarios::Subject> make_subject() const;
    [[nodiscard]] std::unique_ptr<scenarios::Subject> make_served_subject() const;
    [[nodiscard]] scenarios::ExploredProgram explored_program() const;
    // Nothing: the command line is wrong, or there is nothing to explore, which it has said.
    [[nodiscard]] std::optional<scenarios::Explored> explore();
    // Prints each test as it ends.
    [[nodiscard]] std::optional<scenarios::Explored> explore_tests(Progress& progress) const;
    [[nodiscard]] bool write_files(const scenarios::Explored& explored) const;

    CLI::App* explore_;
    CLI::App* run_;
    std::vector<std::string> words_;  // of `explore run`
    std::vector<std::string> program_;
    std::string file_;
    std::vector<std::string> settings_;
    bool no_fork_ = false;
    std::vector<std::string> groups_;
    scenarios::ExploreOptions options_;
    std::chrono::milliseconds limit_ = scenarios::ProcessPool::kNoLimit;  // as given
    bool by_test_ = false;  // the program has tests of GoogleTest
    std::string json_file_;
    std::string junit_file_;
    std::string html_file_;
};

}  // namespace simverbs::cli
