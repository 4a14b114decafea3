// Messages of UC and UD that were lost: nothing answers them, so their sends complete with SUCCESS.
// Works on the records of a trace alone. Raw packets are not considered: they have no peer.
#pragma once

#include <span>
#include <string>

#include "scenarios/engine/explain.hpp"

namespace scenarios {

// A line for each sender, target and reason: how many packets were lost, and the first of them. ""
// where none was lost that the node or the queue pair of the question sent or should have received.
std::string describe_lost_messages(std::span<const Record> records, const Question& question,
                                   const RunNames* names = nullptr);

}  // namespace scenarios
