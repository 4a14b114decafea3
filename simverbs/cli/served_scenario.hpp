// A scenario as a served world has it: its settings, its fabric and its faults. Programs and
// expectations are for whoever runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "fabric/core/outcome.hpp"

#include "simverbs/server/server.hpp"

#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {

// Takes faults before the server runs.
class ServedFaults final : public scenarios::FaultSink {
  public:
    explicit ServedFaults(Server& server) : server_(server) {}
    std::string inject(const simverbs_fault& fault, std::uint32_t& id) override {
        return server_.inject(fault, id);
    }
    [[nodiscard]] std::optional<std::uint64_t> matched(std::uint32_t id) const override {
        return server_.fault_matched(id);
    }
    // Only programs of operations take faults back.
    void clear(std::uint32_t /*id*/) override {}

  private:
    Server& server_;
};

// Says what the scenario has that only programs of operations do, a line each; "": nothing.
std::string describe_operations(const scenarios::Scenario& scenario);

// Gives `options` the settings that `run:` of the scenario names, and leaves the others.
void take_settings(const scenarios::Scenario& scenario, ServerOptions& options);

// Makes the server of a world with the scenario's fabric and without its faults.
fabric::Outcome<std::unique_ptr<Server>> make_server(const scenarios::Scenario& scenario,
                                                     ServerOptions options);

// Makes the server of a world that stays: with the scenario's fabric, its settings, those of
// `options` where it names none, and its faults. A failure leaves nothing of the world.
fabric::Outcome<std::unique_ptr<Server>> make_lasting_server(const scenarios::Scenario& scenario,
                                                             ServerOptions options);

// Says what of the scenario a world that stays does not do; "": it does all of it.
std::string describe_ignored(const scenarios::Scenario& scenario);

}  // namespace simverbs::cli
