// `simverbs fabric`: looks at the fabric of a served world and changes it.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "fabric/core/outcome.hpp"

#include "simverbs/cli/command.hpp"
#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs::cli {

class FabricCommands final : public Command {
  public:
    // Adds the words to `app`; `world` gets the option --world. Both outlive it.
    FabricCommands(CLI::App& app, std::string& world);

    [[nodiscard]] bool is_chosen() const override { return command_->parsed(); }
    [[nodiscard]] int run() override;

  private:
    void add_show();
    void add_link();
    void add_port();
    void add_sm();
    void add_counters();
    CLI::App* add(const char* name, const char* help);
    // Returns the request in the words.
    [[nodiscard]] fabric::Outcome<FabricRequest> request() const;

    std::string& world_;
    CLI::App* command_;
    CLI::App* show_ = nullptr;
    CLI::App* link_ = nullptr;
    CLI::App* port_ = nullptr;
    CLI::App* sm_ = nullptr;
    CLI::App* counters_ = nullptr;
    std::string name_;
    std::string change_;
    std::vector<std::string> values_;
    std::string duration_;
    bool as_json_ = false;
    bool resets_ = false;
    bool of_hardware_ = false;
    bool with_zeros_ = false;
};

}  // namespace simverbs::cli
