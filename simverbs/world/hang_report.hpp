// Reports what every queue pair of a world is doing and what it waits for: the first question when
// a program hangs.
#pragma once

#include <string>
#include <string_view>

namespace simverbs {

class Hca;
class Simulation;
struct QueuePairReport;

// "for a message", "until 5 us: ...": the one thing that has to happen before it goes on.
std::string waits_for(const QueuePairReport& report);

// Lines of text, with the world held. Queue pairs in RESET are left out.
std::string describe_queue_pairs(const Hca& hca);
std::string describe_queue_pairs(const Simulation& simulation);

// The same behind a line with the reason for the report and the virtual time.
std::string hang_report(Simulation& simulation, std::string_view why);

// Names the first CQ that has completions, reports to a channel and is not armed, and says what its
// program has to call; "" where there is none. With the world held.
std::string describe_unarmed(const Simulation& simulation);

}  // namespace simverbs
