// `simverbs watch`: what a served world is doing, again and again.
#pragma once

#include <chrono>
#include <string>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

class WatchCommand {
  public:
    // Adds the words to `app`; `world` gets the option --world. Both outlive it.
    WatchCommand(CLI::App& app, std::string& world);
    WatchCommand(const WatchCommand&) = delete;
    WatchCommand& operator=(const WatchCommand&) = delete;

    [[nodiscard]] bool is_chosen() const { return command_->parsed(); }
    // Watches the world at `socket` until it ends, SIGINT or SIGTERM: an exit status. On a terminal
    // the screen is drawn anew each time; elsewhere each look follows the last.
    [[nodiscard]] int run(const std::string& socket) const;

  private:
    CLI::App* command_;
    std::uint64_t interval_ms_ = 1000;
    std::uint64_t count_ = 0;  // looks; 0: no end
    bool once_ = false;
};

}  // namespace simverbs::cli
