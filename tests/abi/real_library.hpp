// The distribution's own libibverbs, as an oracle: loaded by its path, apart from ours, never
// linked.
#pragma once

#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace simverbs::testing {

class RealLibrary {
  public:
    RealLibrary() : handle_(dlopen(SIMVERBS_ORACLE_IBVERBS, RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(handle_, nullptr) << dlerror();
    }
    RealLibrary(const RealLibrary&) = delete;
    RealLibrary& operator=(const RealLibrary&) = delete;
    ~RealLibrary() { dlclose(handle_); }

    // The function `name` in `version`, with the type of ours.
    template <typename Function>
    Function* find(Function& /*like*/, const char* name, const char* version) const {
        void* address = dlvsym(handle_, name, version);
        EXPECT_NE(address, nullptr) << name << '@' << version;
        return reinterpret_cast<Function*>(address);
    }

  private:
    void* handle_;
};

}  // namespace simverbs::testing
