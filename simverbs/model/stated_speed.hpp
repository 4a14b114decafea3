// The speed that Linux states for a port, where it is not the one that the link runs at.
#pragma once

#include "fabric/core/rate.hpp"

namespace simverbs {

// On Ethernet a lane of 10 Gb/s is QDR, as mlx5 states 10GBASE; FDR10 is InfiniBand's.
constexpr fabric::LinkSpeed stated_speed(fabric::LinkSpeed speed, bool is_ethernet) {
    return is_ethernet && speed == fabric::LinkSpeed::kFdr10 ? fabric::LinkSpeed::kQdr : speed;
}

}  // namespace simverbs
