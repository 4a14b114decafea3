// SIMVERBS_SCENARIO: the library knows nothing of scenarios; libsimverbs-scenario.so, which is
// loaded when the variable is set, does. This is what the two say to each other.
#pragma once

#include <cstdint>
#include <string>

extern "C" {

// How the world of this process went.
struct ScenarioModuleRun {
    std::int64_t now_ps;
    std::uint64_t run_digest;
    const char* mark;  // why it is not deterministic; "": it is
};

// Reads the file, makes the world as it says, and puts its faults there. nullptr, or what is wrong,
// until the next call.
using ScenarioModuleBegin = const char*(const char* file);
// Judges: whether everything that was expected happened. What did not is said on stderr.
using ScenarioModuleEnd = bool(const ScenarioModuleRun* run);

}  // extern "C"

namespace simverbs::abi {

class ScenarioModule {
  public:
    // Loads the module, which lies beside this library. "" or why it cannot be.
    std::string begin(const char* file);
    [[nodiscard]] bool has_begun() const { return end_ != nullptr; }
    // Whether the run was as it had to be. It may begin again then.
    bool end(const ScenarioModuleRun& run);

  private:
    ScenarioModuleEnd* end_ = nullptr;
};

}  // namespace simverbs::abi
