// The commands that start, use and end a served world. Each returns an exit status.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "simverbs/cli/programs.hpp"
#include "simverbs/server/server.hpp"

namespace simverbs::cli {

inline constexpr int kUsage = 2;  // what was asked for does not exist or makes no sense

struct UpOptions {
    ServerOptions server;
    bool foreground = false;
};
int up(UpOptions options);

struct RunOptions {
    ServerOptions server;
    std::vector<std::string> words;     // TOPOLOGY, unless there is a scenario; HOST=COMMAND ...
    std::string scenario;               // a file; "": none
    std::vector<std::string> settings;  // of it
    std::optional<std::chrono::milliseconds> time_limit;
    bool quiet = false;
};
int run(RunOptions options);

// Starts COMMAND on `host` of the world at `socket`; returns only when that fails.
int on(const std::string& socket, const std::string& host, const std::vector<std::string>& command);

int status(const std::string& socket, bool verbose);
int down(const std::string& socket, bool force);

}  // namespace simverbs::cli
