// What goes wrong: the words of include/simverbs/fault.h.
#include "scenarios/engine/fault_words.hpp"
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/format_words.hpp"

namespace scenarios::format {

namespace {

constexpr Shape kAction = word(kActionWords);
constexpr Shape kTrigger = word(kTriggerWords);
constexpr Shape kDirection = word(kDirectionWords);
constexpr Shape kField = word(kFieldWords);
constexpr Shape kNakWord = word(kNakWords);
constexpr Shape kNth = number(1);
constexpr Shape kChance = text();
constexpr Shape kPsnOffset = number(1, 1U << 23U);

constexpr auto kWhenKeys = std::to_array<Key>({
    {"on", &kTrigger, "what it waits for; what its action is done to, or time"},
    {"at", &kDuration, "not before this virtual time; 0s"},
    {"until", &kDuration, "nor at or after this one; no end"},
    {"after", &kFaultName, "sleeps until that fault has fired"},
    {"after_delay", &kDuration, "and so long since"},
    {"nth", &kNth, "of what matches; the first"},
    {"count", &kText, "how many fire, or every; 1"},
    {"chance", &kChance, "of each, as 1/100; certain"},
    {"delay", &kDuration, "from what it waits for to what it does"},
    {"link", &kLink, "packets: where they are looked at; where they begin"},
    {"transmitter", &kNode, "packets: the end of the link that sends them; either"},
    {"from", &kHost, "packets: the host that made them"},
    {"to", &kHost, "packets: the host that they are for"},
    {"opcode", &kText, "packets: SEND_ONLY, RDMA_WRITE, ACKNOWLEDGE, CNP, MAD ..."},
    {"direction", &kDirection, "packets: requests, responses or either; of a qp requests"},
    {"qp", &kEnd, "packets and work requests: the end whose requests they are"},
    {"psn", &kPsnOffset, "packets: 1 is the first of that queue pair"},
    {"attempt", &kNumber32, "packets: 1 is the first transmission of a PSN; any"},
    {"host", &kHost, "work requests and calls: whose"},
    {"queue", &kQueue, "work requests: send or receive; send"},
    {"call", &kText, "calls: ibv_modify_qp, ibv_reg_mr ..."},
});
constexpr Shape kWhen = mapping(kWhenKeys);

constexpr auto kFaultKeys = std::to_array<Key>({
    {"name", &kText, "for others to refer to; fault1, fault2, ..."},
    {"action", &kAction, "what happens", true},
    {"when", &kWhen, "when, and to what; at once"},
    {"link", &kLink, "of actions on links"},
    {"node", &kNode, "of actions on hosts, switches, ports and devices"},
    {"port", &kByte, "of actions on ports; 1"},
    {"qp", &kEnd, "of actions on queue pairs"},
    {"queue", &kQueue, "of ring; send"},
    {"cq", &kCq, "of cq_overrun"},
    {"srq", &kSrq, "of srq_ring"},
    {"memory", &kMemory, "of mr_invalidate"},
    {"fault", &kFaultName, "of release"},
    {"duration", &kDuration, "how long, or how much later"},
    {"interval", &kDuration, "of link_flap: how long it is up between"},
    {"times", &kCount, "of link_flap and duplicate; 1"},
    {"value", &kNumber, "of rewrite, lid, pkey, sm_lid, rnr_nak"},
    {"status", &kStatus, "of completion"},
    {"nak", &kNakWord, "of nak"},
    {"errno", &kErrno, "of call: EINVAL, ENOMEM ..."},
    {"field", &kField, "of rewrite"},
    {"offset", &kNumber32, "of corrupt: which byte; of pkey: which entry"},
    {"bits", &kByte, "of corrupt: which bits of it; all"},
    {"rate", &kText, "of link_rate: \"4x EDR\""},
});

}  // namespace

constinit const Shape kFault = {.kind = ShapeKind::kMapping, .keys = kFaultKeys};

}  // namespace scenarios::format
