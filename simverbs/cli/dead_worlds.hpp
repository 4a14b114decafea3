// The files that a server has left on disk which was killed, or crashed: removed, and told.
#pragma once

#include <string>
#include <vector>

namespace simverbs::cli {

// Where a dead server left a socket at `socket`: removes its files and says so on stderr. Returns
// whether there was one.
bool clear_dead_world(const std::string& socket);

// The names of this user's worlds that are served. Clears those of dead servers in the same folder
// as clear_dead_world() does.
std::vector<std::string> living_worlds();

}  // namespace simverbs::cli
