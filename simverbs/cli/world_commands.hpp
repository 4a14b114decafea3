// The commands that start, use and end a served world: up, on, status, down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "simverbs/cli/command.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

class WorldCommands final : public Command {
  public:
    // Adds them to `app`; `world` gets the option --world. Both outlive it. `program` has the words
    // of the program of `on`.
    WorldCommands(CLI::App& app, std::string& world, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override;
    [[nodiscard]] int run() override;

  private:
    [[nodiscard]] int up();
    // Becomes the program; returns only when that fails.
    [[nodiscard]] int on() const;
    // Prints the status of the world at socket_, which the user calls `name`.
    [[nodiscard]] int status(std::string_view name) const;
    [[nodiscard]] int list();
    [[nodiscard]] int down() const;

    std::string& world_;
    std::string socket_;  // of it
    CLI::App* up_;
    ServerOptions server_;
    bool foreground_ = false;
    CLI::App* on_;
    std::string host_;
    std::vector<std::string> program_;
    CLI::App* status_;
    bool verbose_ = false;
    bool as_json_ = false;
    CLI::App* down_;
    bool force_ = false;
};

}  // namespace simverbs::cli
