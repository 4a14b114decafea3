// Keys for what programs do, and the workloads that are built in.
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/format_words.hpp"

namespace scenarios::format {

namespace {

constexpr Shape kFlags = {.kind = ShapeKind::kWord, .words = kFlagWords};
constexpr Shape kFlagList = list(kFlags);
constexpr auto kKeyWords = std::to_array<std::string_view>({"good", "bad", "stale"});
constexpr Shape kKeyChoice = word(kKeyWords);

constexpr auto kReceiveKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host"},
    {"srq", &kSrq, "or a shared receive queue"},
    {"wq", &kText, "or a work queue"},
    {"id", &kNumber, "of the work request; 0"},
    {"count", &kCount, "so many, each with the next id; 1"},
    {"length", &kSize, "bytes; 64"},
    {"memory", &kMemory, "where the message lands; mem"},
    {"at", &kSize, "offset there; 0"},
    {"step", &kSize, "how much further the next one lies; 0"},
    {"lkey", &kKeyChoice, "good, bad (unknown) or stale (of before its deregistration); good"},
    {"errno", &kErrno, "that posting answers, EINVAL say; none"},
});
constexpr Shape kReceive = mapping(kReceiveKeys);

constexpr auto kSendKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"id", &kNumber, "of the work request; 0"},
    {"count", &kCount, "so many, each with the next id; 1"},
    {"length", &kSize, "bytes; 64, of atomics 8"},
    {"memory", &kMemory, "of this host; mem"},
    {"at", &kSize, "offset there; 0"},
    {"step", &kSize, "how much further the next one lies, at both ends; 0"},
    {"remote_memory", &kMemory, "of the peer; mem"},
    {"to", &kSize, "offset there; 0"},
    {"window", &kWindow, "whose key is used at the peer; the region's"},
    {"lkey", &kKeyChoice, "good, bad (unknown) or stale (of before its deregistration); good"},
    {"rkey", &kKeyChoice, "the same of the peer's"},
    {"imm", &kNumber32, "immediate data"},
    {"flags", &kFlagList, "unsignaled, fence, solicited, inline"},
    {"qkey", &kNumber32, "of UD; the peer's"},
    {"srq_number", &kNumber32, "of XRC; the peer's"},
    {"errno", &kErrno, "that posting answers, EINVAL say; none"},
});
constexpr Shape kSend = mapping(kSendKeys);
constexpr auto kSwapKeys = std::to_array<Key>({
    {"expected", &kNumber, "the word must be this; 0"},
    {"replacement", &kNumber, "then it becomes this; 0"},
});
constexpr Shape kSwap = {.kind = ShapeKind::kMapping, .keys = kSwapKeys, .more = kSendKeys};
constexpr auto kAddKeys = std::to_array<Key>({{"add", &kNumber, "is added to the word; 1"}});
constexpr Shape kAdd = {.kind = ShapeKind::kMapping, .keys = kAddKeys, .more = kSendKeys};
constexpr auto kInvalidateKeys =
    std::to_array<Key>({{"invalidate", &kWindow, "a window of the peer", true}});
constexpr Shape kSendInvalidate = {
    .kind = ShapeKind::kMapping, .keys = kInvalidateKeys, .more = kSendKeys};
constexpr auto kBindKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"id", &kNumber, "of the work request; 0"},
    {"window", &kWindow, "of this host", true},
    {"memory", &kMemory, "the region it opens a part of; mem"},
    {"at", &kSize, "offset there; 0"},
    {"length", &kSize, "bytes; 4096"},
    {"access", &kAccessList, "rights through the window; remote_write, remote_read"},
});
constexpr Shape kBind = mapping(kBindKeys);
constexpr auto kLocalInvalidateKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"id", &kNumber, "of the work request; 0"},
    {"window", &kWindow, "of this host", true},
});
constexpr Shape kLocalInvalidate = mapping(kLocalInvalidateKeys);

constexpr auto kPollKeys = std::to_array<Key>({
    {"qp", &kConnection, "of the completion queue of this end"},
    {"cq", &kCq, "or a completion queue by name"},
    {"count", &kNumber, "waits for so many; 1; with within: at most so many"},
    {"within", &kDuration, "gives up after this virtual time; never"},
    {"status", &kStatus, "each of them has; any"},
    {"opcode", &kOpcode, "each of them has; any"},
    {"id", &kNumber, "the first of them has; any"},
    {"exactly", &kFlag, "it is a failure if fewer come within that time; true"},
});
constexpr Shape kPoll = mapping(kPollKeys);
constexpr auto kArmKeys = std::to_array<Key>({
    {"qp", &kConnection, "of the completion queue of this end"},
    {"cq", &kCq, "or a completion queue by name"},
    {"solicited", &kFlag, "for solicited completions only"},
});
constexpr Shape kArm = mapping(kArmKeys);
constexpr auto kWaitKeys = std::to_array<Key>({
    {"qp", &kConnection, "of the completion queue of this end"},
    {"cq", &kCq, "or a completion queue by name"},
    {"within", &kDuration, "gives up after this virtual time; never"},
    {"comes", &kFlag, "false: none may come within that time; true"},
});
constexpr Shape kWaitEvent = mapping(kWaitKeys);
constexpr auto kAsyncKeys = std::to_array<Key>({
    {"event", &kEvent, "which", true},
    {"within", &kDuration, "gives up after this virtual time; never"},
});
constexpr Shape kAsync = mapping(kAsyncKeys);

constexpr Shape kTimes = number(0, 1'000'000);
constexpr auto kLoopKeys = std::to_array<Key>({
    {"times", &kTimes, "how often", true},
    {"do", &kOperations, "what; ids of work requests rise by their count each time", true},
});
constexpr Shape kLoop = mapping(kLoopKeys);
constexpr Shape kParallel = list(kOperations);

constexpr auto kMigrations = std::to_array<std::string_view>({"migrated", "rearm", "armed"});
constexpr Shape kMigration = word(kMigrations);
constexpr auto kModifyOwn = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"state", &kState, "to which; the same"},
    {"notify_drained", &kFlag, "with SQD: raise SQ_DRAINED"},
    {"alternate", &kFlag, "load the peer's address as alternate path"},
    {"alternate_lid", &kNumber32, "of it; the peer's"},
    {"migration", &kMigration, "state of path migration"},
    {"errno", &kErrno, "that the call answers, EINVAL say; none"},
});
constexpr auto kModifyAttributes = std::to_array<Key>({
    {"access", &kAccessList, "what the peer may do"},
    {"min_rnr_timer", &kByte, "code of the pause that the receiver asks for"},
    {"pkey_index", &kNumber32, "in the table of the port"},
    {"qkey", &kNumber32, "of UD"},
});
constexpr Shape kModify = {
    .kind = ShapeKind::kMapping, .keys = kModifyOwn, .more = kModifyAttributes};
constexpr auto kReconnectKeys = std::to_array<Key>({
    {"qp", &kConnection, "both ends of it: to RESET, and to RTS again", true},
});
constexpr Shape kReconnect = mapping(kReconnectKeys);
constexpr auto kRegionKeys = std::to_array<Key>({
    {"memory", &kMemory, "of this host; mem"},
    {"access", &kAccessList, "rights of the new region; as before"},
});
constexpr Shape kRegion = mapping(kRegionKeys);
constexpr auto kFillKeys = std::to_array<Key>({
    {"memory", &kMemory, "of this host; mem"},
    {"at", &kSize, "offset; 0"},
    {"length", &kSize, "bytes; all"},
    {"pattern", &kNumber, "which: byte k is a hash of it and k", true},
});
constexpr Shape kFill = mapping(kFillKeys);
constexpr auto kDestroyKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host"},
    {"srq", &kSrq, "or a shared receive queue"},
    {"id", &kConnection, "or the rdma_cm id of the end of this host, with what it has under way"},
    {"errno", &kErrno, "that the call answers, EBUSY say; none"},
});
constexpr Shape kDestroy = mapping(kDestroyKeys);
constexpr auto kLimitKeys = std::to_array<Key>({
    {"srq", &kSrq, "which", true},
    {"below", &kNumber32, "receives; SRQ_LIMIT_REACHED once there are fewer", true},
});
constexpr Shape kLimit = mapping(kLimitKeys);
constexpr auto kGidKeys = std::to_array<Key>({
    {"port", &kByte, "of this host; 1"},
    {"index", &kByte, "of its table: an entry, or the first empty one; 1"},
    {"gid", &kText, "as IPv6 is written: fe80::1", true},
});
constexpr Shape kGid = mapping(kGidKeys);
constexpr Shape kSignal = text();

constexpr auto kOperationKeys = std::to_array<Key>({
    {"receive", &kReceive, "posts receives"},
    {"send", &kSend, "posts SENDs"},
    {"send_with_invalidate", &kSendInvalidate, "posts a SEND that takes back a window's key"},
    {"write", &kSend, "posts RDMA WRITEs"},
    {"read", &kSend, "posts RDMA READs"},
    {"compare_and_swap", &kSwap, "posts atomics"},
    {"fetch_and_add", &kAdd, "posts atomics"},
    {"bind", &kBind, "posts the binding of a window"},
    {"local_invalidate", &kLocalInvalidate, "posts the end of a window's binding"},
    {"poll", &kPoll, "takes completions"},
    {"arm", &kArm, "asks for an event of a completion queue"},
    {"wait_event", &kWaitEvent, "waits for it, and acknowledges it"},
    {"await", &kAsync, "waits for an asynchronous event of this host"},
    {"sleep", &kDuration, "lets virtual time pass"},
    {"loop", &kLoop, "repeats operations"},
    {"parallel", &kParallel, "lists of operations side by side; goes on when all have ended"},
    {"signal", &kSignal, "lets who waits for this word go on"},
    {"wait", &kSignal, "until somebody signals this word"},
    {"modify", &kModify, "changes a queue pair"},
    {"connect", &kConnect, "takes an end further; of `cm: true` resolves and connects"},
    {"listen", &kListen, "rdma_cm: takes requests for a port number"},
    {"accept", &kAccept, "rdma_cm: waits for the request of the peer and accepts it"},
    {"reject", &kReject, "rdma_cm: waits for the request of the peer and rejects it"},
    {"disconnect", &kDisconnect, "rdma_cm: moves the queue pair to ERR, and ends the connection"},
    {"join", &kJoin, "rdma_cm: resolves a multicast group and joins it"},
    {"leave", &kDisconnect, "rdma_cm: the end leaves its multicast group"},
    {"await_cm", &kAwaitCm, "waits for an event of rdma_cm of this host"},
    {"reconnect", &kReconnect, "makes a connection anew"},
    {"deregister", &kRegion, "gives a region back"},
    {"register", &kRegion, "registers the memory again, under a new key"},
    {"fill", &kFill, "writes a pattern"},
    {"destroy", &kDestroy, "of an object"},
    {"limit", &kLimit, "arms the limit of a shared receive queue"},
    {"change_gid", &kGid, "of a port, as its administrator would"},
    {"inject", &kFault, "a fault from now on"},
    {"clear", &kFaultName, "takes a fault back"},
    {"expect", &kExpect, "what must hold now"},
});

constexpr Shape kHostPair = list(kHost);
constexpr auto kWorkloadConnection = std::to_array<Key>({
    {"messages", &kTimes, "of each flow; 10"},
    {"size", &kSize, "of a message; 64"},
    {"type", &kText, "RC or UC; RC"},
    {"retries", &kByte, "see connections"},
    {"rnr_retries", &kByte, "see connections"},
    {"timeout", &kByte, "see connections"},
    {"mtu", &kText, "see connections"},
});
constexpr auto kPairKeys = std::to_array<Key>({{"between", &kHostPair, "two hosts", true}});
constexpr Shape kPair = {
    .kind = ShapeKind::kMapping, .keys = kPairKeys, .more = kWorkloadConnection};
constexpr auto kStreamKeys = std::to_array<Key>({
    {"from", &kHost, "the sender", true},
    {"to", &kHost, "the receiver", true},
    {"window", &kCount, "messages under way; 8"},
});
constexpr Shape kStream = {
    .kind = ShapeKind::kMapping, .keys = kStreamKeys, .more = kWorkloadConnection};
constexpr auto kAllKeys = std::to_array<Key>({{"hosts", &kHostPair, "two or more; all"}});
constexpr Shape kAllToAll = {
    .kind = ShapeKind::kMapping, .keys = kAllKeys, .more = kWorkloadConnection};
constexpr auto kIncastKeys = std::to_array<Key>({
    {"to", &kHost, "the receiver", true},
    {"from", &kHostPair, "the senders; all others"},
});
constexpr Shape kIncast = {
    .kind = ShapeKind::kMapping, .keys = kIncastKeys, .more = kWorkloadConnection};
constexpr auto kStoreKeys = std::to_array<Key>({
    {"server", &kHost, "keeps the table", true},
    {"clients", &kHostPair, "put by WRITE and a SEND, get by READ; all others"},
});
constexpr Shape kStore = {
    .kind = ShapeKind::kMapping, .keys = kStoreKeys, .more = kWorkloadConnection};
constexpr auto kWorkloadKeys = std::to_array<Key>({
    {"ping_pong", &kPair, "one message to and fro"},
    {"stream", &kStream, "SENDs one way, a window of them under way"},
    {"all_to_all", &kAllToAll, "everyone WRITEs to everyone, with immediate data"},
    {"incast", &kIncast, "many SEND to one at once"},
    {"key_value", &kStore, "a store on one host, clients on others"},
});

}  // namespace

constinit const Shape kOperation = {
    .kind = ShapeKind::kOneOf, .keys = kOperationKeys, .title = "operation"};
constinit const Shape kOperations = {
    .kind = ShapeKind::kList, .item = &kOperation, .title = "operations"};
constinit const Shape kWorkload = {.kind = ShapeKind::kOneOf, .keys = kWorkloadKeys};

}  // namespace scenarios::format
