// The options of the world in this process, and how they come from its environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "simverbs/world/world_options.hpp"

namespace simverbs::driver {

// In the names of the trace and the capture, %n is the number of the world in this process, %p the
// number of the process.
struct EmbeddedOptions : WorldOptions {
    std::string host;                       // only this host's devices are seen; empty: all
    bool flush_trace = false;               // after each event
    std::string digest_file;                // takes a line at the end of each world; empty: none
    std::size_t kept_records = 0;           // in memory, for simverbs_explain()
    bool summary = false;                   // printed to stderr at exit
    std::uint32_t first_device_number = 0;  // of the devices of the process, in their order
};

// As set() of WorldOptions; settings that embedded worlds alone have, too.
std::string set_embedded(EmbeddedOptions& options, Setting setting, std::string_view value);

// Reads the variables of embedded worlds into `options`. Returns what is wrong with the first one
// that has no valid value, as in "SIMVERBS_SEED='x' is not a number from 0 to 2^64-1"; else "".
std::string read_environment(EmbeddedOptions& options);

}  // namespace simverbs::driver
