// Finds parts of a running fabric by the names that an operator gives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

    // The node of that name, or all HCAs of the host of that name.
    [[nodiscard]] fabric::Outcome<std::vector<fabric::Node*>> nodes(const std::string& name) const;
    [[nodiscard]] fabric::Outcome<fabric::Link*> link(const std::string& name) const;
    // "NODE:NUMBER", or "HOST:NUMBER" of a host that has one HCA.
    [[nodiscard]] fabric::Outcome<fabric::Port*> port(const std::string& name) const;

  private:
    Simulation& simulation_;
};

}  // namespace simverbs
