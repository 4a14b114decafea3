// The options of a served world.
#pragma once

#include <string>

#include "simverbs/world/world_options.hpp"

namespace simverbs {

// Begins with the defaults of served worlds, and with what the environment has of the settings that
// apply everywhere.
struct ServerOptions : WorldOptions {
    ServerOptions();

    std::string socket;  // path
};

}  // namespace simverbs
