// `simverbs completion`: scripts that complete command lines in shells. `simverbs complete`, which
// no help lists: what these scripts ask for the candidates.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class CompletionCommands final : public Command {
  public:
    // Adds them to `app`, which outlives it and is what they complete. `program` has the words to
    // complete, of `complete`.
    CompletionCommands(CLI::App& app, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override {
        return completion_->parsed() || complete_->parsed();
    }
    [[nodiscard]] int run() override;

  private:
    const CLI::App& app_;
    CLI::App* completion_;
    std::string shell_;
    CLI::App* complete_;
    std::vector<std::string> words_;
};

}  // namespace simverbs::cli
