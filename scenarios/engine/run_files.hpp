// The files that a run writes beside its verdict.
#pragma once

#include <string>

namespace scenarios {

struct RunFiles {
    std::string trace{};    // JSON Lines; "": none
    std::string capture{};  // pcapng; "": none
};

}  // namespace scenarios
