// The failure that ends a walk: an invariant that does not hold, with the line that replays it.
#pragma once

#include <string>

namespace walk {

// Which walk this thread is on, for the message.
void set_replay(const std::string& arguments);
void set_step(unsigned long long step);
// Prints and aborts, so that a debugger or a core shows where.
[[noreturn]] void fail(const std::string& what);

inline void require(bool holds, const char* what) {
    if (!holds) {
        fail(what);
    }
}

}  // namespace walk
