// The messages by which a program under `simverbs explore` says what came of its branches. The
// command explores the program; the library in the program forks it and writes the messages.
#pragma once

#include <cstdint>
#include <string_view>

namespace simverbs {

// The variable that asks a program for messages. Its lines are the process that started the
// program, the limit of wall time of a branch in milliseconds, the file that takes the messages,
// the one with the output of the program, which it has opened for appending, and the links in
// /proc/self/fd of each descriptor with which it was started.
inline constexpr const char* kBranchesVariable = "SIMVERBS_BRANCHES";

// The names of faults that begin so. The program forks where such a fault would act: the child goes
// on with it, and the parent without it, once the child has ended.
inline constexpr std::string_view kForkingFault = "branch";
// A fault that acts as others do; that it has fired is reported.
inline constexpr std::string_view kReportedFault = "choice";

enum class BranchReportKind : std::uint32_t {
    kStarted,  // the library reads the variable; without this message nothing is known of faults
    kFired,    // a fault of kReportedFault
    kEnded,    // the child with a fault of kForkingFault; its output follows the name
    // Such a fault would have acted, and the process cannot fork; the reason follows. A kEnded
    // behind it, of a child that could not go on, counts for nothing.
    kNotForked,
    // A world ended with its program; the name is that of the fault of its branch, if it is one.
    // The text says why the run might not repeat itself; "": it would.
    kWorldEnded,
};

// A message, followed by the name of the fault and by a text.
struct BranchReport {
    BranchReportKind kind = BranchReportKind::kFired;
    std::uint32_t name_bytes = 0;
    std::uint64_t text_bytes = 0;
    std::int32_t status = 0;         // of kEnded, as waitpid(2) has it
    std::uint32_t is_late = 0;       // of kEnded: 1 if it was killed at the limit
    std::int64_t time_ps = 0;        // of kWorldEnded: virtual time
    std::uint64_t run_digest = 0;    // of kWorldEnded
    std::uint64_t turns_digest = 0;  // of kWorldEnded: who got each turn of SIMVERBS_ORDER; or 0
};
static_assert(sizeof(BranchReport) == 48);

}  // namespace simverbs
