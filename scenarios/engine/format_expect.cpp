// Keys for what must have happened.
#include "scenarios/engine/counters.hpp"
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/format_words.hpp"
#include "scenarios/engine/record_names.hpp"

namespace scenarios::format {

namespace {

constexpr auto kRangeKeys = std::to_array<Key>({
    {"at_least", &kNumber, "this or more"},
    {"at_most", &kNumber, "this or less"},
});
constexpr Shape kRange = {.kind = ShapeKind::kMapping, .keys = kRangeKeys, .instead = &kNumber};
constexpr auto kTimeKeys = std::to_array<Key>({
    {"at_least", &kDuration, "this or later"},
    {"at_most", &kDuration, "this or earlier"},
});
constexpr Shape kTime = mapping(kTimeKeys);

constexpr auto kCompletionKeys = std::to_array<Key>({
    {"id", &kNumber, "of the work request; with count: of the first, and each has the next"},
    {"status", &kStatus, "SUCCESS where it is left out"},
    {"opcode", &kOpcode, "where the status is SUCCESS"},
    {"bytes", &kSize, "of a receive"},
    {"imm", &kNumber32, "immediate data"},
    {"count", &kCount, "so many such; 1"},
    {"at_least", &kDuration, "visible at this virtual time or later"},
    {"at_most", &kDuration, "or earlier"},
    {"rest", &kFlag, "true: any number of completions like this, to the end"},
});
constexpr Shape kCompletion = mapping(kCompletionKeys);
constexpr Shape kCompletionList = list(kCompletion);
constexpr Shape kCompletions = {
    .kind = ShapeKind::kNamed, .refers_to = Names::kEnd, .item = &kCompletionList};
constexpr Shape kStates = {.kind = ShapeKind::kNamed, .refers_to = Names::kEnd, .item = &kState};
constexpr auto kEventKeys = std::to_array<Key>({
    {"event", &kEvent, "which", true},
    {"of", &kText, "connection, queue or number of the port"},
    {"count", &kCount, "so many such; 1"},
    {"at_least", &kDuration, "at this virtual time or later"},
    {"at_most", &kDuration, "or earlier"},
});
constexpr Shape kEventItem = {.kind = ShapeKind::kMapping, .keys = kEventKeys, .instead = &kEvent};
constexpr Shape kEventList = list(kEventItem);
constexpr Shape kEvents = {
    .kind = ShapeKind::kNamed, .refers_to = Names::kHost, .item = &kEventList};
constexpr auto kCmEventKeys = std::to_array<Key>({
    {"event", &kCmEvent, "which", true},
    {"of", &kConnection, "of which connection; any"},
    {"status", &kCmStatus, "a number, or an errno; any"},
    {"private_data", &kText, "that came with it; any"},
    {"count", &kCount, "so many such; 1"},
    {"at_least", &kDuration, "at this virtual time or later"},
    {"at_most", &kDuration, "or earlier"},
});
constexpr Shape kCmEventItem = {
    .kind = ShapeKind::kMapping, .keys = kCmEventKeys, .instead = &kCmEvent};
constexpr Shape kCmEventList = list(kCmEventItem);
constexpr Shape kCmEvents = {
    .kind = ShapeKind::kNamed, .refers_to = Names::kHost, .item = &kCmEventList};
constexpr auto kCounterKeys = [] {
    std::array<Key, kCounters.size()> keys{};
    for (std::size_t i = 0; i < keys.size(); ++i) {
        keys[i] = {kCounters[i].name, &kRange, "a number, or at_least and at_most"};
    }
    return keys;
}();
constexpr Shape kCounterBody = mapping(kCounterKeys);
constexpr Shape kCountersOf = {
    .kind = ShapeKind::kNamed, .refers_to = Names::kNode, .item = &kCounterBody};
constexpr Shape kFired = {.kind = ShapeKind::kNamed, .refers_to = Names::kFault, .item = &kRange};
constexpr auto kSameKeys = std::to_array<Key>({
    {"host", &kHost, "whose", true},
    {"memory", &kMemory, "of it; mem"},
    {"at", &kSize, "offset; 0"},
});
constexpr Shape kSame = mapping(kSameKeys);
constexpr auto kMemoryKeys = std::to_array<Key>({
    {"host", &kHost, "whose", true},
    {"memory", &kMemory, "of it; mem"},
    {"at", &kSize, "offset; 0"},
    {"length", &kSize, "bytes; all"},
    {"pattern", &kNumber, "what fill writes with this number"},
    {"untouched", &kFlag, "true: as the program left it before anything ran; false: changed"},
    {"same_as", &kSame, "another place"},
    {"checksum", &kText, "XXH64 of it, 16 hexadecimal digits"},
    {"word", &kNumber, "the eight bytes there, as this machine reads them"},
});
constexpr Shape kMemoryItem = mapping(kMemoryKeys);
constexpr Shape kMemories = list(kMemoryItem);
constexpr Shape kRecordName = word(kRecordNames);
constexpr auto kNeverKeys = std::to_array<Key>({
    {"host", &kHost, "whose; any"},
    {"status", &kStatus, "a completion with this status"},
    {"opcode", &kOpcode, "a completion with this opcode"},
    {"event", &kEvent, "this asynchronous event"},
    {"cm_event", &kCmEvent, "this event of rdma_cm"},
    {"state", &kState, "a queue pair that goes there"},
    {"record", &kRecordName, "a trace record of this name"},
    {"from", &kDuration, "not from this virtual time on; 0s"},
    {"until", &kDuration, "not up to this one; the end"},
});
constexpr Shape kNeverItem = mapping(kNeverKeys);
constexpr Shape kNever = list(kNeverItem);
constexpr auto kInvariantKeys = std::to_array<Key>({
    {"exactly_once", &kFlag, "no work request completes twice, no message arrives twice; true"},
    {"in_order", &kFlag, "completions of a queue come in the order of posting; true"},
    {"integrity", &kFlag, "what a receive holds is what was sent; true"},
});
constexpr Shape kInvariants = mapping(kInvariantKeys);

constexpr Shape kExitStatus = number(0, 255);
constexpr Shape kExits = {
    .kind = ShapeKind::kNamed, .refers_to = Names::kHost, .item = &kExitStatus};

constexpr auto kExpectKeys = std::to_array<Key>({
    {"completions", &kCompletions,
     "all of an end, in order; of processes, id is the place of the request in its queue, from 0"},
    {"qp_states", &kStates, "of ends"},
    {"events", &kEvents, "all asynchronous events of a host, in order"},
    {"cm_events", &kCmEvents,
     "all events of rdma_cm of a host, in order; of processes those that the kernel gave"},
    {"counters", &kCountersOf, "of nodes"},
    {"fired", &kFired, "how often faults have fired"},
    {"memory", &kMemories, "what it holds"},
    {"time", &kTime, "virtual time, at the end of the run that of the last event"},
    {"never", &kNever, "what must not have happened"},
    {"invariants", &kInvariants, "what holds unless it is switched off"},
    {"digest", &kText, "of the run, 16 hexadecimal digits"},
    {"exit", &kExits, "exit statuses of processes, as a shell gives them: 137 is SIGKILL; 0"},
    {"stopped", &kFlag, "true: programs are still waiting when nothing is left to happen"},
});

}  // namespace

constinit const Shape kExpect = mapping(kExpectKeys);

}  // namespace scenarios::format
