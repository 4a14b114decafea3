// The answer to an operator.
#pragma once

#include <string>

namespace simverbs {

struct FabricAnswer {
    int error = 0;     // errno; 0: `text` is what was asked for
    std::string text;  // else why it cannot be
};

}  // namespace simverbs
