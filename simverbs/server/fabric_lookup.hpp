// Finds parts of a running fabric by the names that an operator gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/port.hpp"

#include "simverbs/world/simulation.hpp"

namespace simverbs {

// "9", "0x9".
std::optional<std::uint32_t> parse_number(std::string_view text);

// Each fails with a sentence that names what there is.
class FabricLookup {
  public:
    // The simulation outlives it.
    explicit FabricLookup(Simulation& simulation) : simulation_(simulation) {}

    // A node's name, or a host's.
    [[nodiscard]] fabric::Outcome<fabric::Node*> node(const std::string& name) const;
    [[nodiscard]] fabric::Outcome<fabric::Link*> link(const std::string& name) const;
    // "NODE:NUMBER".
    [[nodiscard]] fabric::Outcome<fabric::Port*> port(const std::string& name) const;

  private:
    Simulation& simulation_;
};

}  // namespace simverbs
