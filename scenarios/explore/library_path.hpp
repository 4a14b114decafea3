// Makes the loader find the libraries of a program that is explored.
#pragma once

#include <cstdlib>
#include <string>

#include "scenarios/search/variation.hpp"

namespace scenarios {

// Returns the environment in which `libraries`, a folder, is searched first; "": as it is.
inline Environment library_path(const std::string& libraries) {
    if (libraries.empty()) {
        return {};
    }
    const char* const earlier = std::getenv("LD_LIBRARY_PATH");
    return {{"LD_LIBRARY_PATH",
             earlier == nullptr ? libraries : libraries + ":" + std::string(earlier)}};
}

}  // namespace scenarios
