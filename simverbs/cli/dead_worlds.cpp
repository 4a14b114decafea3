#include "simverbs/cli/dead_worlds.hpp"

#include <fmt/format.h>

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/server/world_place.hpp"

namespace simverbs::cli {
namespace {

void tell(const std::string& socket) {
    complain(fmt::format("the server of the world at '{}' was killed or has crashed; its files are "
                         "removed",
                         socket),
             kUsage);
}

}  // namespace

bool clear_dead_world(const std::string& socket) {
    const bool cleared = WorldPlace::clear(socket);
    if (cleared) {
        tell(socket);
    }
    return cleared;
}

std::vector<std::string> living_worlds() {
    std::vector<std::string> cleared;
    std::vector<std::string> names = find_worlds(cleared);
    for (const std::string& socket : cleared) {
        tell(socket);
    }
    return names;
}

}  // namespace simverbs::cli
