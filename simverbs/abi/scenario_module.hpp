// The library knows nothing of scenarios, nor how to explain a trace; libsimverbs-scenario.so does,
// which is loaded when SIMVERBS_SCENARIO is set or an explanation asked for. This is what the two
// say to each other.
#pragma once

#include <cstdint>
#include <string>

#include "fabric/core/outcome.hpp"

#include "simverbs/simverbs.h"

extern "C" {

// How the world of this process went.
struct ScenarioModuleRun {
    std::int64_t now_ps;
    std::uint64_t run_digest;
    const char* mark;  // why it is not deterministic; "": it is
};

// Reads the file, makes the world as it says, and puts its faults there; `topology` is the fabric
// of a file that has none. nullptr, or what is wrong, until the next call.
using ScenarioModuleBegin = const char*(const char* file, const char* topology);
// Judges: nullptr when everything that was expected happened, or a report of what did not, until
// the next call.
using ScenarioModuleEnd = const char*(const ScenarioModuleRun* run);

// Calls see(record, argument) for each record.
using ScenarioModuleRecords = void(void* from, simverbs_record_callback see, void* argument);
// The subject of an explanation: a failure of the queue pair `qpn` of `node`; 0 and "": of any.
struct ScenarioModuleSubject {
    const char* node;
    std::uint32_t qpn;
    bool is_cut;  // records before the first one were forgotten
    // The completion with this status that was polled from the queue `cq`, in which `unread` ones
    // of the queue pair are left; 0: any that failed.
    std::uint32_t cq;
    std::uint64_t unread;
    int status;
};
// Sentences, a line each, until the next call; "": nothing has failed.
using ScenarioModuleExplain = const char*(ScenarioModuleRecords* records, void* from,
                                          const ScenarioModuleSubject* subject);

}  // extern "C"

namespace simverbs::abi {

// Fails where the module cannot be asked.
fabric::Outcome<std::string> explain_records(ScenarioModuleRecords* records, void* from,
                                             const ScenarioModuleSubject& subject);

class ScenarioModule {
  public:
    // Loads the module, which lies beside this library. "" or why it cannot be.
    std::string begin(const char* file, const std::string& topology);
    [[nodiscard]] bool has_begun() const { return end_ != nullptr; }
    // Returns "" if the run was as it had to be, else a report. It may begin again then.
    std::string end(const ScenarioModuleRun& run);

  private:
    ScenarioModuleEnd* end_ = nullptr;
};

}  // namespace simverbs::abi
