// The environment of programs that this one starts: one that sets LD_PRELOAD itself keeps this
// library, in front of its own. Neither allocates nor changes the environment of this process,
// which may be shared with a parent after vfork(2).
#pragma once

#include <climits>
#include <cstddef>

namespace simverbs::devices {

class ProgramEnvironment {
  public:
    static constexpr std::size_t kMaxVariables = 1024;

    // `given` may be null, as a program may hand it to the kernel.
    explicit ProgramEnvironment(char* const* given);
    ProgramEnvironment(const ProgramEnvironment&) = delete;
    ProgramEnvironment& operator=(const ProgramEnvironment&) = delete;

    // The environment as it was given where this library is in it, where LD_PRELOAD is empty or
    // missing, where the program leaves the world, or where there is no room.
    [[nodiscard]] char* const* get() const { return used_; }

  private:
    char* const* used_;
    char preload_[2 * PATH_MAX];
    char* variables_[kMaxVariables + 1];
};

}  // namespace simverbs::devices
