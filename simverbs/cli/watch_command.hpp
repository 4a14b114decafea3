// `simverbs watch`: what a served world is doing, again and again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"

namespace simverbs::cli {

class WatchCommand final : public Command {
  public:
    // Adds the words to `app`; `world` gets the option --world. Both outlive it.
    WatchCommand(CLI::App& app, std::string& world);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    // Watches the world until it ends, `q`, SIGINT or SIGTERM; the exit status tells a signal. On a
    // terminal the screen is drawn anew each time; elsewhere each look follows the last.
    [[nodiscard]] int run() override;

  private:
    std::string& world_;
    CLI::App* command_;
    std::chrono::milliseconds interval_{1000};
    std::uint64_t count_ = 0;  // looks; 0: no end
    bool once_ = false;
    bool as_json_ = false;
};

}  // namespace simverbs::cli
