// The protocol of a link. Both ends of a link, and all ports of a switch, speak the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace fabric {

// The values of ibv_port_attr.link_layer.
enum class LinkLayer : std::uint8_t { kInfiniband = 1, kEthernet = 2 };

constexpr std::string_view to_string(LinkLayer layer) {
    return layer == LinkLayer::kEthernet ? "Ethernet" : "InfiniBand";
}

}  // namespace fabric
