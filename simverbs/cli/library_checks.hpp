// Checks that the libraries of simverbs are whole and of one version, and finds the libibverbs.so.1
// that a program takes which is started as it is.
#pragma once

#include "simverbs/cli/machine_checks.hpp"

namespace simverbs::cli {

// The libraries beside this program, and the one that it runs on itself.
Finding check_parts();
// Loads the library in a process of its own, and counts the devices of a world.
Finding check_devices_of_a_program();
// LD_PRELOAD
Finding check_preloaded_libraries();
// LD_LIBRARY_PATH, then the folder of the system's libraries.
Finding check_library_path();

}  // namespace simverbs::cli
