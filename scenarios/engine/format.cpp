#include "scenarios/engine/format.hpp"

#include <algorithm>
#include <array>

#include "simverbs/model/settings.hpp"

#include "scenarios/engine/format_words.hpp"

namespace scenarios::format {

namespace {

// ---- run ---------------------------------------------------------------------------------------

// Settings of a world that a scenario has: rows of simverbs/model/settings.hpp with a key.
constexpr std::size_t kSettingCount = std::ranges::count_if(
    simverbs::kSettings, [](const simverbs::SettingRow& row) { return !row.key.empty(); });
constexpr auto kSettingRows = [] {
    std::array<const simverbs::SettingRow*, kSettingCount> rows{};
    auto next = rows.begin();
    for (const simverbs::SettingRow& row : simverbs::kSettings) {
        if (!row.key.empty()) {
            *next++ = &row;
        }
    }
    return rows;
}();
constexpr auto kSettingShapes = [] {
    std::array<Shape, kSettingCount> shapes{};
    std::ranges::transform(kSettingRows, shapes.begin(), [](const simverbs::SettingRow* row) {
        return row->kind == simverbs::SettingKind::kWord
                   ? word(row->words.first(row->words.size() - row->embedded_words))
                   : number(0, row->most);
    });
    return shapes;
}();

// "MEANING; DEFAULT" of a row, as other keys are described.
constexpr std::size_t kLongestDescription = 160;
using Description = std::array<char, kLongestDescription>;
constexpr auto kSettingDescriptions = [] {
    std::array<Description, kSettingCount> descriptions{};
    for (std::size_t i = 0; i < kSettingCount; ++i) {
        auto end = descriptions[i].begin();
        end = std::ranges::copy(kSettingRows[i]->meaning, end).out;
        if (!kSettingRows[i]->by_default.empty()) {
            end = std::ranges::copy(std::string_view("; "), end).out;
            end = std::ranges::copy(kSettingRows[i]->by_default, end).out;
        }
    }
    return descriptions;
}();

constexpr Shape kPsn = number(0, 0xFF'FFFF);
constexpr Shape kLowBits = number(0, 0xFFFF);
constexpr Shape kStop = {.kind = ShapeKind::kDuration, .least = 1};
constexpr auto kOwnRunKeys = std::to_array<Key>({
    {"stop", &kStop,
     "virtual time at which the run ends, whatever is left to do; 1000s, which is less than "
     "one ACK timeout of code 28 and more"},
    {"time_limit", &kStop, "of wall time, after which processes are killed; no end"},
});
constexpr auto kRunKeys = [] {
    std::array<Key, kSettingCount + kOwnRunKeys.size()> keys{};
    for (std::size_t i = 0; i < kSettingCount; ++i) {
        keys[i] = {kSettingRows[i]->key, &kSettingShapes[i], kSettingDescriptions[i].data()};
    }
    std::ranges::copy(kOwnRunKeys, keys.begin() + kSettingCount);
    return keys;
}();
constexpr Shape kRun = mapping(kRunKeys);
constexpr Shape kIncludes = list(kText);
constexpr Shape kFabric = {.kind = ShapeKind::kAnything};

// ---- what a host has ---------------------------------------------------------------------------

constexpr Shape kMemorySize = {.kind = ShapeKind::kSize, .least = 1, .most = kMostBytes};
constexpr auto kDomains = std::to_array<std::string_view>({"own", "other"});
constexpr Shape kDomain = word(kDomains);
constexpr auto kMemoryKeys = std::to_array<Key>({
    {"size", &kMemorySize, "bytes; 1MiB"},
    {"access", &kAccessList, "rights of the region; all"},
    {"domain", &kDomain, "protection domain: own (of the queue pairs) or other"},
    {"fill", &kNumber, "a pattern to begin with (see fill); else zeros"},
});
constexpr Shape kMemoryOfHost = mapping(kMemoryKeys);
constexpr Shape kMemories = {.kind = ShapeKind::kNamed, .item = &kMemoryOfHost};
constexpr Shape kEntries = number(1, 4'194'303);
constexpr auto kCqKeys = std::to_array<Key>({
    {"size", &kEntries, "entries; 1024"},
    {"channel", &kFlag, "with a completion channel, for arm and wait_event"},
});
constexpr Shape kCqOfHost = mapping(kCqKeys);
constexpr Shape kCqs = {.kind = ShapeKind::kNamed, .item = &kCqOfHost};
constexpr Shape kSlots = number(1, 32768);
constexpr auto kSrqKeys = std::to_array<Key>({
    {"size", &kSlots, "receives; 256"},
});
constexpr Shape kSrqOfHost = mapping(kSrqKeys);
constexpr Shape kSrqs = {.kind = ShapeKind::kNamed, .item = &kSrqOfHost};
constexpr auto kWindowTypes = std::to_array<std::string_view>({"1", "2"});
constexpr Shape kWindowType = word(kWindowTypes);
constexpr auto kWindowKeys = std::to_array<Key>({{"type", &kWindowType, "1 or 2; 2"}});
constexpr Shape kWindowOfHost = mapping(kWindowKeys);
constexpr Shape kWindows = {.kind = ShapeKind::kNamed, .item = &kWindowOfHost};
constexpr auto kWqKeys = std::to_array<Key>({{"cq", &kCq, "its completion queue", true}});
constexpr Shape kWqOfHost = mapping(kWqKeys);
constexpr Shape kWqs = {.kind = ShapeKind::kNamed, .item = &kWqOfHost};
constexpr auto kHostKeys = std::to_array<Key>({
    {"memory", &kMemories, "regions by name; each host has one called mem besides"},
    {"completion_queues", &kCqs, "by name; each end has one called as its connection"},
    {"shared_receives", &kSrqs, "shared receive queues by name"},
    {"windows", &kWindows, "memory windows by name"},
    {"work_queues", &kWqs, "receive work queues by name"},
    {"do", &kOperations, "a program of this host, called as the host"},
    {"run", &kText,
     "instead: a command for /bin/sh, an unmodified program say, started on this host"},
});
constexpr Shape kHostBody = mapping(kHostKeys);
constexpr Shape kHosts = {.kind = ShapeKind::kNamed, .refers_to = Names::kHost, .item = &kHostBody};
constexpr auto kProgramKeys = std::to_array<Key>({
    {"host", &kHost, "where it runs", true},
    {"do", &kOperations, "its operations, one after another", true},
});
constexpr Shape kProgram = mapping(kProgramKeys);
constexpr Shape kPrograms = {.kind = ShapeKind::kNamed, .item = &kProgram};

// ---- connections -------------------------------------------------------------------------------

constexpr auto kMtus = std::to_array<std::string_view>({"256", "512", "1024", "2048", "4096"});
constexpr Shape kMtu = word(kMtus);
constexpr Shape kFiveBits = number(0, 31);
constexpr Shape kThreeBits = number(0, 7);
constexpr auto kReached = std::to_array<std::string_view>({"RESET", "INIT", "RTR", "RTS"});
constexpr Shape kReachedState = word(kReached);
constexpr Shape kPort = number(1, 254);
constexpr Shape kInline = number(0, 4096);
constexpr auto kEndTable = std::to_array<Key>({
    {"mtu", &kMtu, "path MTU in bytes; 1024"},
    {"timeout", &kFiveBits,
     "4.096 us * 2^timeout a try, 0: none; 14. connectx6 waits 1.707 times as long, and with 1 to "
     "15 as with 16"},
    {"retries", &kThreeBits, "of lost packets; 7"},
    {"rnr_retries", &kThreeBits, "of a receiver that is not ready, 7: no end; 7"},
    {"min_rnr_timer", &kFiveBits, "code of the pause that the receiver asks for; 12 (0.64 ms)"},
    {"initiator_depth", &kByte, "READs and atomics under way; 16"},
    {"responder_resources", &kByte, "the same, of the peer; 16"},
    {"access", &kAccessList, "what the peer may do; all"},
    {"psn", &kPsn, "of the first packet sent; 100"},
    {"receive_psn", &kPsn, "of the first packet expected; the peer's psn"},
    {"pkey_index", &kLowBits, "in the table of the port; 0"},
    {"qkey", &kNumber32, "of UD; 0x11111111"},
    {"lid", &kLowBits, "where packets are sent to; the peer's"},
    {"gid_index", &kByte, "of Ethernet; RoCE v2 over IPv4"},
});
constexpr auto kMadeKeys = std::to_array<Key>({
    {"state", &kReachedState, "how far the queue pair is taken; RTS"},
    {"port", &kPort, "of the device; 1"},
    {"sends", &kSlots, "slots of the send queue; 256"},
    {"receives", &kSlots, "slots of the receive queue that is its own; 256"},
    {"completions", &kEntries, "entries of the completion queue that is its own; 1024"},
    {"inline", &kInline, "bytes that may be sent inline; 256"},
    {"signal_all", &kFlag, "every send completes"},
    {"cq", &kCq, "completion queue of both queues; one of its own"},
    {"send_cq", &kCq, "of the send queue alone"},
    {"srq", &kSrq,
     "shared receive queue; a receive queue of its own. XRC: of the second host; one called as "
     "the connection"},
});
constexpr auto kEndKeysAll = [] {
    std::array<Key, kEndTable.size() + kMadeKeys.size()> all{};
    std::ranges::copy(kEndTable, all.begin());
    std::ranges::copy(kMadeKeys, all.begin() + kEndTable.size());
    return all;
}();
constexpr Shape kEndBody = mapping(kEndKeysAll);
constexpr Shape kEnds = {.kind = ShapeKind::kNamed, .refers_to = Names::kHost, .item = &kEndBody};
constexpr Shape kService = word(kServiceWords);
constexpr Shape kHostList = list(kHost);
constexpr auto kConnectionKeys = std::to_array<Key>({
    {"between", &kHostList, "the two hosts", true},
    {"type", &kService, "RC, UC, UD or XRC; RC"},
    {"cm", &kFlag, "true: its programs connect it by rdma_cm (listen, connect, accept, join)"},
    {"ends", &kEnds, "what differs at one end"},
});
constexpr Shape kConnectionBody = {
    .kind = ShapeKind::kMapping, .keys = kConnectionKeys, .more = kEndKeysAll};
constexpr Shape kConnections = {.kind = ShapeKind::kNamed, .item = &kConnectionBody};

// ---- the whole ---------------------------------------------------------------------------------

constexpr Shape kFaults = {.kind = ShapeKind::kList, .item = &kFault};
constexpr Shape kDefaultConnection = mapping(kEndKeysAll);
constexpr auto kDefaultsKeys = std::to_array<Key>({
    {"connection", &kDefaultConnection, "of every connection that does not say otherwise"},
});
constexpr auto kScenarioKeys = std::to_array<Key>({
    {"include", &kIncludes, "files that this one goes over, key by key"},
    {"defaults", &kDefaults, "what holds unless it is said otherwise"},
    {"run", &kRun, "how it is run"},
    {"fabric", &kFabric,
     "a topology: a generator (star:2), {file: PATH}, or the keys of a topology file"},
    {"hosts", &kHosts, "what hosts have, and do"},
    {"programs", &kPrograms, "further programs"},
    {"connections", &kConnections, "pairs of queue pairs, made before anything runs"},
    {"workloads", &kWorkloads, "traffic that is built in, with connections of its own"},
    {"faults", &kFaults, "what goes wrong, and when"},
    {"expect", &kExpect, "what must have happened at the end"},
});

}  // namespace

constinit const Shape kWorkloads = {.kind = ShapeKind::kNamed, .item = &kWorkload};
constinit const Shape kDefaults = mapping(kDefaultsKeys);
constinit const Shape kScenario = mapping(kScenarioKeys);

}  // namespace scenarios::format
