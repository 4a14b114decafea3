// The function of libc, or of a library preloaded behind this one, that a function here stands
// before.
#pragma once

#include <dlfcn.h>

namespace simverbs::devices {

template <class F>
F* next(const char* name) {
    return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace simverbs::devices

#define INTERPOSED extern "C" __attribute__((visibility("default")))
