// Shapes and words that several parts of the format use.
#pragma once

#include <array>
#include <string_view>

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/rdma_cm_events.hpp"
#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/errno_names.hpp"
#include "scenarios/engine/shape.hpp"

namespace scenarios::format {

inline constexpr auto kEventWords = [] {
    std::array<std::string_view, simverbs::kAsyncEventCount> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = simverbs::kAsyncEvents[i].name;
    }
    return words;
}();
inline constexpr auto kOpcodeWords = [] {
    std::array<std::string_view, simverbs::kWcOpcodeNames.size()> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = simverbs::kWcOpcodeNames[i].name;
    }
    return words;
}();
inline constexpr Words kCmEventWords = simverbs::kRdmaEventNames;
inline constexpr auto kErrnoWords = [] {
    std::array<std::string_view, kErrnoNames.size()> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = kErrnoNames[i].name;
    }
    return words;
}();
inline constexpr auto kAccessWords = std::to_array<std::string_view>(
    {"local_write", "remote_write", "remote_read", "remote_atomic", "mw_bind"});
inline constexpr auto kServiceWords = std::to_array<std::string_view>({"RC", "UC", "UD", "XRC"});
inline constexpr auto kFlagWords =
    std::to_array<std::string_view>({"unsignaled", "fence", "solicited", "inline"});
inline constexpr auto kQueueWords = std::to_array<std::string_view>({"send", "receive"});

constexpr Shape text() {
    return {.kind = ShapeKind::kText};
}
constexpr Shape number(std::uint64_t least = 0,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    return {.kind = ShapeKind::kNumber, .least = least, .most = most};
}
constexpr Shape word(Words words) {
    return {.kind = ShapeKind::kWord, .words = words};
}
constexpr Shape name(Names kind) {
    return {.kind = ShapeKind::kName, .refers_to = kind};
}
constexpr Shape list(const Shape& item) {
    return {.kind = ShapeKind::kList, .item = &item};
}
constexpr Shape mapping(std::span<const Key> keys) {
    return {.kind = ShapeKind::kMapping, .keys = keys};
}

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;

inline constexpr Shape kText = text();
inline constexpr Shape kNumber = number();
inline constexpr Shape kNumber32 = number(0, 0xFFFF'FFFF);
inline constexpr Shape kByte = number(0, 255);
inline constexpr Shape kCount = number(1, 1'000'000);
inline constexpr Shape kFlag = {.kind = ShapeKind::kFlag};
inline constexpr Shape kDuration = {.kind = ShapeKind::kDuration};
inline constexpr Shape kSize = {.kind = ShapeKind::kSize, .most = kMostBytes};
inline constexpr Shape kStatus = word(simverbs::kWcStatusNames);
inline constexpr Shape kOpcode = word(kOpcodeWords);
inline constexpr Shape kEvent = word(kEventWords);
inline constexpr Shape kErrno = word(kErrnoWords);
inline constexpr Shape kCmEvent = word(kCmEventWords);
// The status of an event of rdma_cm: an errno, the reason of a REJ, the status of a SIDR_REP.
inline constexpr Shape kCmStatus = {
    .kind = ShapeKind::kNumber, .most = 0xFFFF, .words = kErrnoWords};
inline constexpr Shape kState = word(simverbs::kQpStateNames);
inline constexpr Shape kQueue = word(kQueueWords);
inline constexpr Shape kAccess = word(kAccessWords);
inline constexpr Shape kAccessList = list(kAccess);
inline constexpr Shape kHost = name(Names::kHost);
inline constexpr Shape kNode = name(Names::kNode);
inline constexpr Shape kHca = name(Names::kHca);
inline constexpr Shape kLink = name(Names::kLink);
inline constexpr Shape kConnection = name(Names::kConnection);
inline constexpr Shape kEnd = name(Names::kEnd);
inline constexpr Shape kMemory = name(Names::kMemory);
inline constexpr Shape kCq = name(Names::kCq);
inline constexpr Shape kSrq = name(Names::kSrq);
inline constexpr Shape kWindow = name(Names::kWindow);
inline constexpr Shape kFaultName = name(Names::kFault);

}  // namespace scenarios::format
