// How verbs fail: they return an errno value and set errno to it, since those of real devices fail
// in ioctl(2) and programs print what errno says.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace simverbs::abi {

// Returns `error`, which is in errno too unless it is 0.
inline int with_errno(int error) {
    if (error != 0) {
        errno = error;
    }
    return error;
}

// Says why a verb is refused in simverbs_last_error() alone: programs call it to see whether.
void keep_reason(std::string_view verb, const std::string& reason);

// Says why a verb is refused: in simverbs_last_error(), and with SIMVERBS_WARN=1 on stderr. Returns
// `error`, which is in errno too.
int refuse_because(std::string_view verb, int error, const std::string& reason);

template <class... Args>
int refuse(std::string_view verb, int error, fmt::format_string<Args...> reason, Args&&... args) {
    return refuse_because(verb, error, fmt::format(reason, std::forward<Args>(args)...));
}

// The device made a ring that does not fit into the address space of the process.
inline int refuse_unmapped(std::string_view verb) {
    return refuse(verb, ENOMEM, "the memory of the device cannot be mapped into this process");
}

}  // namespace simverbs::abi
