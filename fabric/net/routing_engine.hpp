// How a subnet manager is to compute routes; how each engine does is in fabric/sm/routing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fabric {

enum class RoutingEngine : std::uint8_t {
    kAutomatic,  // the first of the others that suits: fat-tree, min-hop, up-down
    kMinHop,     // whether or not it has credit loops
    kUpDown,
    kFatTree,
};

inline constexpr auto kRoutingEngineNames =
    std::to_array<std::string_view>({"auto", "min-hop", "up-down", "fat-tree"});

constexpr std::string_view to_string(RoutingEngine engine) {
    return kRoutingEngineNames[static_cast<std::size_t>(engine)];
}

// Nothing: no engine is called so.
constexpr std::optional<RoutingEngine> routing_engine_of(std::string_view name) {
    for (std::size_t i = 0; i < kRoutingEngineNames.size(); ++i) {
        if (kRoutingEngineNames[i] == name) {
            return static_cast<RoutingEngine>(i);
        }
    }
    return std::nullopt;
}

}  // namespace fabric
