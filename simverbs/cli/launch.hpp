// Starting a program on a host of a served world: the environment that makes it find its devices
// there, and nothing else about it changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace simverbs::cli {

struct Placement {
    std::string socket;  // of the world
    std::string host;
    std::string devices;  // of HostPlace; empty: /sys and /dev are as they are
};

struct HostPlace {
    bool is_known = true;  // else `hosts` names those that there are
    std::string devices;   // the folder that the server makes for programs that look for the host's
                           // devices in /sys and /dev; empty when it does not answer
    std::string hosts;
    std::string problem;  // why the server does not answer; empty: it does
};

// Asks the world's server about a host. Waits for the server.
HostPlace ask_for_host(const std::string& socket, const std::string& host);

// Where the file of this program lies, by what the kernel says.
std::string folder_of_this_program();

// Where libibverbs.so.1 of simverbs lies, beside this program as built or as installed; empty when
// it is not found: kNoLibrary says so.
std::string library_folder();
inline constexpr std::string_view kNoLibrary =
    "libibverbs.so.1 of simverbs is not beside this program";

// Sets SIMVERBS_SERVER, SIMVERBS_HOST, SIMVERBS_DEVICES, LD_LIBRARY_PATH and LD_PRELOAD in this
// process's environment.
void place_environment(const Placement& placement);

// Sets what makes programs find devices of a world of their own: LD_LIBRARY_PATH. Takes back what
// place_environment() has set, in this process's environment.
void embed_environment();

// Replaces this process; returns only when that fails, with the exit status of env(1), and has said
// why.
int run_program(const std::vector<std::string>& command);

}  // namespace simverbs::cli
