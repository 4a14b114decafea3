// The commands that start, use and end a served world: up, on, status, down.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "fabric/core/outcome.hpp"

#include "simverbs/cli/command.hpp"
#include "simverbs/cli/world_options.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

using MadeServer = fabric::Outcome<std::unique_ptr<Server>>;
using MakeServer = std::function<MadeServer()>;

class WorldCommands final : public Command {
  public:
    // Adds them to `app`; `world` gets the option --world. Both outlive it. `program` has the words
    // of the program of `on`.
    WorldCommands(CLI::App& app, std::string& world, std::vector<std::string> program);

    [[nodiscard]] bool is_chosen() const override;
    [[nodiscard]] int run() override;

  private:
    [[nodiscard]] int up();
    [[nodiscard]] int up_with_scenario();
    // Serves the world that `make` makes and the user calls `name`, in the background if not told
    // otherwise.
    [[nodiscard]] int serve_world(std::string_view name, const MakeServer& make) const;
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
    ScenarioChoice scenario_;
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
