// Keys for operations of rdma_cm.
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/format_words.hpp"

namespace scenarios::format {

namespace {

constexpr Shape kPortNumber = number(1, 0xFFFF);
constexpr auto kListenTypes = std::to_array<std::string_view>({"RC", "UC", "UD"});
constexpr Shape kListenType = word(kListenTypes);
constexpr auto kListenKeys = std::to_array<Key>({
    {"port", &kPortNumber, "the port number of rdma_cm; 7471"},
    {"type", &kListenType, "RC (the port space TCP), UC (IB) or UD (UDP); RC"},
    {"backlog", &kCount, "requests that may wait; 128"},
    {"errno", &kErrno, "that the call answers, EADDRINUSE say; none"},
});
// Keys that connect, accept and join have in common.
constexpr auto kOutcomeKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"wait", &kFlag, "false: goes on at once; await_cm tells what comes of it; true"},
    {"within", &kDuration, "gives up after this virtual time; never"},
    {"event", &kCmEvent, "the answer; ESTABLISHED, of join MULTICAST_JOIN"},
    {"status", &kCmStatus, "of that event: a number, or an errno; any"},
    {"errno", &kErrno, "that a call answers, ENETUNREACH say; none"},
});
constexpr auto kConnectKeys = std::to_array<Key>({
    {"to", &kText, "an IP address; that of the peer's host"},
    {"port", &kPortNumber, "the port number there; 7471"},
    {"resolve_within", &kDuration, "time that the address has, and the route; 2s"},
    {"private_data", &kText, "goes with the request"},
    {"answer", &kText, "private data of the answer; any"},
});
constexpr auto kAcceptKeys = std::to_array<Key>({
    {"private_data", &kText, "goes with the answer"},
});
constexpr auto kReasons = number(28, 35);
constexpr auto kRejectKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"within", &kDuration, "gives up after this virtual time; never"},
    {"reason", &kReasons, "of the REJ: 28 (consumer reject) or 35 (vendor option); 28"},
    {"private_data", &kText, "goes with the REJ"},
    {"errno", &kErrno, "that the call answers, EINVAL say; none"},
});
constexpr auto kDisconnectKeys = std::to_array<Key>({
    {"qp", &kConnection, "the end of this host", true},
    {"errno", &kErrno, "that the call answers, EINVAL say; none"},
});
constexpr auto kJoinKeys = std::to_array<Key>({
    {"group", &kText, "an IP address: 239.1.1.1", true},
    {"resolve_within", &kDuration, "time that the address has; 2s"},
});
constexpr auto kAwaitCmKeys = std::to_array<Key>({
    {"event", &kCmEvent, "which", true},
    {"qp", &kConnection, "of the end of this host; of any"},
    {"status", &kCmStatus, "of it: a number, or an errno; any"},
    {"private_data", &kText, "of it; any"},
    {"count", &kCount, "until so many have come, those of before included; 1"},
    {"within", &kDuration, "gives up after this virtual time; never"},
});

}  // namespace

constinit const Shape kListen = mapping(kListenKeys);
constinit const Shape kConnect = {
    .kind = ShapeKind::kMapping, .keys = kConnectKeys, .more = kOutcomeKeys};
constinit const Shape kAccept = {
    .kind = ShapeKind::kMapping, .keys = kAcceptKeys, .more = kOutcomeKeys};
constinit const Shape kReject = mapping(kRejectKeys);
constinit const Shape kDisconnect = mapping(kDisconnectKeys);
constinit const Shape kJoin = {
    .kind = ShapeKind::kMapping, .keys = kJoinKeys, .more = kOutcomeKeys};
constinit const Shape kAwaitCm = mapping(kAwaitCmKeys);

}  // namespace scenarios::format
