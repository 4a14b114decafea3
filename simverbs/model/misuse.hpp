// Mistakes of programs that verbs allow, or answer with no more than an errno: named when asked
// for.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace simverbs {

enum class Misuse : std::uint8_t {
    kAttributeMissing,
    kAttributeSuperfluous,
    kOnlyUnsignaledSends,
    kNoReceiveAtRtr,
    kEmptySegment,
    kUndefinedField,
    kEventsNotAcknowledged,
    kNotDestroyed,
    kKeyAfterDereg,
    kBufferChanged,
    kBufferDeregistered,
    kEmptyReceiveSegment,
    kCompletionsUnread,
    kPolledOnce,
    kDestroyedTwice,
    kUsedAfterDestroy,
};

struct MisuseRow {
    Misuse misuse;
    std::string_view name;
    std::string_view text;  // what to do, or what follows
};
inline constexpr auto kMisuses = std::to_array<MisuseRow>({
    {Misuse::kAttributeMissing, "attribute_missing",
     "ibv_modify_qp lacks an attribute that this transition needs"},
    {Misuse::kAttributeSuperfluous, "attribute_superfluous",
     "ibv_modify_qp has an attribute that this transition does not take"},
    {Misuse::kOnlyUnsignaledSends, "only_unsignaled_sends",
     "the send queue is full, and none of its requests is signaled: it stays full for good"},
    {Misuse::kNoReceiveAtRtr, "no_receive_at_rtr",
     "no receive is posted as the queue pair enters RTR: the peer's first send may wait or fail"},
    {Misuse::kEmptySegment, "empty_segment",
     "a scatter/gather element of length 0 is 0 bytes, not 2^31"},
    {Misuse::kUndefinedField, "undefined_field",
     "a completion in error defines wr_id, status, qp_num and vendor_err only"},
    {Misuse::kEventsNotAcknowledged, "events_not_acknowledged",
     "destroying waits until as many events have been acknowledged as were taken"},
    {Misuse::kNotDestroyed, "not_destroyed", "the program left objects behind"},
    {Misuse::kKeyAfterDereg, "key_after_dereg",
     "a work request names a key that was deregistered: it fails where the memory is touched"},
    {Misuse::kBufferChanged, "buffer_changed",
     "a buffer changed between posting and polling the completion: either content may have left"},
    {Misuse::kBufferDeregistered, "buffer_deregistered",
     "memory was deregistered before the completion of a work request that uses it was polled"},
    {Misuse::kEmptyReceiveSegment, "empty_receive_segment",
     "a scatter/gather element of length 0 of a receive takes 0 bytes, not 2^31"},
    {Misuse::kCompletionsUnread, "completions_unread",
     "a queue pair was destroyed and completions that nobody had polled went with it"},
    {Misuse::kPolledOnce, "polled_once",
     "ibv_poll_cq does not wait: it was called once and found nothing, though a completion was to "
     "come"},
    {Misuse::kDestroyedTwice, "destroyed_twice",
     "an object that has ended was destroyed again: refused with EINVAL here, and elsewhere a "
     "crash"},
    {Misuse::kUsedAfterDestroy, "used_after_destroy",
     "an object that has ended was used: refused here, and elsewhere a crash or worse"},
});
inline constexpr std::size_t kMisuseCount = kMisuses.size();
static_assert(static_cast<std::size_t>(Misuse::kUsedAfterDestroy) + 1 == kMisuseCount);

constexpr const MisuseRow& properties(Misuse misuse) {
    return kMisuses[static_cast<std::size_t>(misuse)];
}
constexpr std::string_view to_string(Misuse misuse) {
    return properties(misuse).name;
}

}  // namespace simverbs
