// Names mistakes of the program (model/misuse.hpp) with SIMVERBS_WARN=1: the first of a kind in a
// world is a line on stderr and an event of the trace, which no digest counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "simverbs/abi/objects.hpp"
#include "simverbs/model/misuse.hpp"

namespace simverbs::abi {

// `subject`: the number or handle of the object concerned, 0 for none; `detail` may be empty. Not
// with the lock of a queue or context held: telling the trace takes a turn in the world.
void name_misuse(Context& context, Misuse misuse, std::uint32_t subject, std::string_view detail);
// The line alone, where there may be no more turns; true the first time.
bool say_misuse(Misuse misuse, std::uint32_t subject, std::string_view detail);
// Which attribute was wrong in an ibv_modify_qp() that failed.
void name_bad_modify(Context& context, const QueuePair& qp, QpState from, QpState to,
                     QpAttrs given);
// Names what the context's watch has found while polling.
void name_found(Context& context);
// A poll of a context whose mistakes are to be named.
void count_poll(CompletionQueue& cq, bool found_any);
// A signaled send of the queue pair whose completion was not polled.
bool awaits_send(const Context& context, const QueuePair& qp);
// The queue was polled once, in vain, and no channel tells of its next completion.
bool was_polled_once_in_vain(const CompletionQueue& cq);
// Names such a queue where `qp` that goes now has completions to come, or unread ones.
void name_polled_once(Context& context, QueuePair& qp);
// A mistake that is allowed counts as named already.
void allow_misuse(Misuse misuse, bool allowed);
// Names are given anew in the next world.
void forget_named_misuse();

}  // namespace simverbs::abi
