// A function of libc by its name, for those that the library interposes.
#pragma once

#include <atomic>

#include <dlfcn.h>

namespace simverbs::abi {

// libc's own, whatever lies before it: not RTLD_NEXT, since libc comes before this library where a
// program needs libibverbs.so.1 only. Found as the library is loaded, or at a first call before
// that; without a lock, which another thread might hold as the process forks.
template <class Function>
class OfLibc {
  public:
    explicit constexpr OfLibc(const char* name) : name_(name) {}
    Function find() {
        void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        auto found = reinterpret_cast<Function>(libc == nullptr ? nullptr : dlsym(libc, name_));
        function_.store(found, std::memory_order_relaxed);
        return found;
    }
    template <class... Arguments>
    auto operator()(Arguments... arguments) {
        Function function = function_.load(std::memory_order_relaxed);
        return (function == nullptr ? find() : function)(arguments...);
    }

  private:
    const char* name_;
    std::atomic<Function> function_{nullptr};
};

}  // namespace simverbs::abi
