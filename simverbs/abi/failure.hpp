// How verbs fail: they return an errno value and set errno to it, since those of real devices fail
// in ioctl(2) and programs print what errno says.
#pragma once

#include <cerrno>

namespace simverbs::abi {

// Returns `error`, which is in errno too unless it is 0.
inline int with_errno(int error) {
    if (error != 0) {
        errno = error;
    }
    return error;
}

}  // namespace simverbs::abi
