// Sentences about the steps that lead to a completion, a line each: what its ends had sent,
// answered and called before. "" where there is nothing to say.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/trail.hpp"

namespace scenarios {

// The program does not see completions of a queue that had no room for them, or is dead.
std::string describe_undelivered(std::span<const Record> records, const Record& completion);

// " in a request that had arrived at 1.5us": a responder refuses requests in their order.
std::string arrival_text(const Trail& trail, const Record& refused);

// Names what the program of that node had done to memory and rights before.
std::string describe_calls(std::span<const Record> records, const Record& before);

// The requester itself found something wrong, before it sent the request or in the middle.
std::string describe_sent_before(std::span<const Record> records, const Record& completion);

// How many packets were sent, and sent again.
std::string describe_retries(const Trail& trail);

// "s0 dropped a frame for LID 77: no route leads there (no_route)", of a record `frame_dropped`.
std::string describe_drop(const Record& dropped);

// How often the responder had no receive.
std::string describe_not_ready(std::span<const Record> records, const Record& completion);

}  // namespace scenarios
