// Files of a world that a command served and that are cut, the disk being full say.
#pragma once

#include "simverbs/cli/exit_status.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

// After Server::run(): names each on stderr. Returns whether all are complete.
inline bool complain_of_incomplete(const Server& server) {
    bool complete = true;
    for (const std::string& file : server.incomplete_files()) {
        complain(file, kFailed);
        complete = false;
    }
    return complete;
}

}  // namespace simverbs::cli
