#include "simverbs/devices/program_environment.hpp"

#include <cstdio>
#include <cstring>

#include <dlfcn.h>

namespace simverbs::devices {
namespace {

constexpr const char* kPreload = "LD_PRELOAD=";
constexpr const char* kDevices = "SIMVERBS_DEVICES=";
constexpr const char* kLibrary = "libsimverbs-devices.so";

char g_library[PATH_MAX];

__attribute__((constructor)) void find_library() {
    Dl_info about{};
    if (dladdr(reinterpret_cast<void*>(&find_library), &about) != 0 && about.dli_fname != nullptr) {
        std::snprintf(g_library, sizeof g_library, "%s", about.dli_fname);
    }
}

bool begins_with(const char* text, const char* prefix) {
    return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

}  // namespace

ProgramEnvironment::ProgramEnvironment(char* const* given) : used_(given) {
    std::size_t count = 0;
    const char* preload = nullptr;
    bool is_in_world = false;
    for (; given != nullptr && given[count] != nullptr; ++count) {
        if (begins_with(given[count], kPreload)) {
            preload = given[count] + std::strlen(kPreload);
        }
        is_in_world = is_in_world || begins_with(given[count], kDevices);
    }
    if (!is_in_world || preload == nullptr || *preload == '\0' || count > kMaxVariables ||
        std::strstr(preload, kLibrary) != nullptr || std::strchr(g_library, '/') == nullptr) {
        return;
    }
    const int length =
        std::snprintf(preload_, sizeof preload_, "%s%s:%s", kPreload, g_library, preload);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof preload_) {
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        variables_[i] = begins_with(given[i], kPreload) ? preload_ : given[i];
    }
    variables_[count] = nullptr;
    used_ = variables_;
}

}  // namespace simverbs::devices
