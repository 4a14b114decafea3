// Keys for what goes wrong: the words of include/simverbs/fault.h.
#include "scenarios/engine/fault_words.hpp"
#include "scenarios/engine/format.hpp"
#include "scenarios/engine/format_words.hpp"

namespace scenarios::format {

namespace {

using simverbs::FaultMember;

// "link_flap, duplicate: how often": what a key says, behind the actions that read it.
class KeyText {
  public:
    consteval KeyText(simverbs::FaultMembers members, std::string_view what) {
        for (const simverbs::FaultActionRow& row : simverbs::kFaultActions) {
            if ((row.needs | row.takes | row_of(row.subject).reads).intersects(members)) {
                add(size_ == 0 ? "" : ", ");
                add(row.name);
            }
        }
        add(": ");
        add(what);
    }
    constexpr operator std::string_view() const {  // NOLINT(google-explicit-constructor)
        return {chars_.data(), size_};
    }

  private:
    consteval void add(std::string_view text) {
        for (const char c : text) {
            chars_.at(size_++) = c;
        }
    }

    std::array<char, 128> chars_{};
    std::size_t size_ = 0;
};
constexpr KeyText kQueueText(FaultMember::kQueue, "send or receive; send");
constexpr KeyText kCqText(FaultMember::kCq, "which one");
constexpr KeyText kSrqText(FaultMember::kSrq, "which one");
constexpr KeyText kMemoryText(FaultMember::kMr, "which one");
constexpr KeyText kFaultText(FaultMember::kFault, "which one");
constexpr KeyText kIntervalText(FaultMember::kInterval, "how long it is up between");
constexpr KeyText kTimesText(FaultMember::kFlaps | FaultMember::kCopies, "how often; 1");
constexpr KeyText kFewerText(FaultMember::kFewer, "than a poll would return; 1");
constexpr KeyText kValueText(FaultMember::kHeaderValue | FaultMember::kLid | FaultMember::kPkey |
                                 FaultMember::kRnrTimer,
                             "the new value, or the code of the timer");
constexpr KeyText kStatusText(FaultMember::kStatus, "any but SUCCESS");
constexpr KeyText kNakText(FaultMember::kNak, "psn_sequence");
constexpr KeyText kErrnoText(FaultMember::kErrno, "EINVAL, ENOMEM ...");
constexpr KeyText kReasonText(FaultMember::kRejectReason, "8 (invalid service ID) ...");
constexpr KeyText kFieldText(FaultMember::kField, "which one of the headers");
constexpr KeyText kOffsetText(FaultMember::kByteOffset | FaultMember::kTableIndex,
                              "which byte, or which entry of the table; 0");
constexpr KeyText kBitsText(FaultMember::kBits, "which of the byte; all");
constexpr KeyText kRateText(FaultMember::kWidth | FaultMember::kSpeed, "\"4x EDR\"");

constexpr auto kEveryHit = std::to_array<std::string_view>({"every"});
constexpr Shape kHits = {.kind = ShapeKind::kNumber, .least = 1, .words = kEveryHit};
constexpr Shape kAction = word(kActionWords);
constexpr Shape kTrigger = word(kTriggerWords);
constexpr Shape kDirection = word(kDirectionWords);
constexpr Shape kField = word(kFieldWords);
constexpr Shape kNakWord = word(kNakWords);
constexpr Shape kRejectReason = number(1, UINT16_MAX);
constexpr Shape kNth = number(1);
constexpr Shape kChance = text();
constexpr Shape kAttempt = number(1, UINT32_MAX);
constexpr Shape kPositiveByte = number(1, UINT8_MAX);
constexpr Shape kPsnOffset = number(1, 1U << 23U);

constexpr auto kWhenKeys = std::to_array<Key>({
    {"on", &kTrigger, "what it waits for; what its action is done to, or time"},
    {"at", &kDuration,
     "not before this virtual time; 0s. A packet has the time at which it is queued at the link, "
     "and may start on it later"},
    {"until", &kDuration, "nor at or after this one; no end"},
    {"after", &kFaultName, "sleeps until that fault has fired"},
    {"after_delay", &kDuration, "and so long since"},
    {"nth", &kNth, "of what matches; the first"},
    {"count", &kHits, "how many fire, or every; 1"},
    {"chance", &kChance, "of each, as 1/100; certain"},
    {"delay", &kDuration, "from what it waits for to what it does"},
    {"link", &kLink, "packets: where they are looked at; where they begin"},
    {"transmitter", &kNode, "packets: the end of the link that sends them; either"},
    {"from", &kHca, "packets: the host that made them"},
    {"to", &kHca, "packets: the host that they are for"},
    {"opcode", &kText, "packets: SEND_ONLY, RDMA_WRITE, ACKNOWLEDGE, UD, RC_SEND, MAD, CM_REQ ..."},
    {"direction", &kDirection, "packets: requests, responses or either; of a qp requests"},
    {"qp", &kEnd, "packets and work requests: the end whose requests they are"},
    {"psn", &kPsnOffset, "packets: 1 is the first of that queue pair"},
    {"attempt", &kAttempt, "packets: 1 is the first transmission of a PSN; any"},
    {"host", &kHca, "work requests and calls: whose"},
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
    {"port", &kPositiveByte, "of actions on ports; 1"},
    {"qp", &kEnd, "of actions on queue pairs"},
    {"queue", &kQueue, kQueueText},
    {"cq", &kCq, kCqText},
    {"srq", &kSrq, kSrqText},
    {"memory", &kMemory, kMemoryText},
    {"fault", &kFaultName, kFaultText},
    {"duration", &kDuration, "how long, or how much later"},
    {"interval", &kDuration, kIntervalText},
    {"times", &kCount, kTimesText},
    {"fewer", &kCount, kFewerText},
    {"value", &kNumber, kValueText},
    {"status", &kStatus, kStatusText},
    {"nak", &kNakWord, kNakText},
    {"errno", &kErrno, kErrnoText},
    {"reason", &kRejectReason, kReasonText},
    {"field", &kField, kFieldText},
    {"offset", &kNumber32, kOffsetText},
    {"bits", &kPositiveByte, kBitsText},
    {"rate", &kText, kRateText},
});

}  // namespace

constinit const Shape kFault = {.kind = ShapeKind::kMapping, .keys = kFaultKeys};

}  // namespace scenarios::format
