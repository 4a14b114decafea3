// Access rights of memory regions, memory windows and queue pairs.
//
// Same bits as enum ibv_access_flags. Rights that are a matter of placement (huge pages, relaxed
// ordering) are listed so that they can be accepted; nothing in the model acts on them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simverbs/model/enum_set.hpp"

namespace simverbs {

enum class Access : std::uint32_t {
    kLocalWrite = 1U << 0,
    kRemoteWrite = 1U << 1,
    kRemoteRead = 1U << 2,
    kRemoteAtomic = 1U << 3,
    kMwBind = 1U << 4,
    kZeroBased = 1U << 5,
    kOnDemand = 1U << 6,
    kHugeTlb = 1U << 7,
    kFlushGlobal = 1U << 8,
    kFlushPersistent = 1U << 9,
    kRelaxedOrdering = 1U << 20,
};
template <>
inline constexpr bool kIsSetMember<Access> = true;
using AccessRights = EnumSet<Access>;

struct AccessName {
    Access access;
    std::string_view name;
};
inline constexpr auto kAccessNames = std::to_array<AccessName>({
    {Access::kLocalWrite, "LOCAL_WRITE"},
    {Access::kRemoteWrite, "REMOTE_WRITE"},
    {Access::kRemoteRead, "REMOTE_READ"},
    {Access::kRemoteAtomic, "REMOTE_ATOMIC"},
    {Access::kMwBind, "MW_BIND"},
    {Access::kZeroBased, "ZERO_BASED"},
    {Access::kOnDemand, "ON_DEMAND"},
    {Access::kHugeTlb, "HUGETLB"},
    {Access::kFlushGlobal, "FLUSH_GLOBAL"},
    {Access::kFlushPersistent, "FLUSH_PERSISTENT"},
    {Access::kRelaxedOrdering, "RELAXED_ORDERING"},
});

constexpr std::string_view to_string(Access access) {
    for (const AccessName& row : kAccessNames) {
        if (row.access == access) {
            return row.name;
        }
    }
    return "unknown";
}

// The arguments of a FLUSH (IBA A19.4.1): the place that the bytes are to have reached, and which
// bytes. Same values as in the FETH, and as enum ibv_placement_type and enum ibv_selectivity_level.
enum class PlacementType : std::uint8_t { kGlobal = 1U << 0, kPersistent = 1U << 1 };
template <>
inline constexpr bool kIsSetMember<PlacementType> = true;
using PlacementTypes = EnumSet<PlacementType>;
enum class FlushReach : std::uint8_t { kRange = 0, kRegion = 1 };

// The rights that a FLUSH of these types needs of the queue pair and of the key.
constexpr AccessRights rights_for(PlacementTypes types) {
    AccessRights rights;
    if (types.contains(PlacementType::kGlobal)) {
        rights = rights | Access::kFlushGlobal;
    }
    if (types.contains(PlacementType::kPersistent)) {
        rights = rights | Access::kFlushPersistent;
    }
    return rights;
}
// Returns true if the two fields have a meaning.
constexpr bool is_flush(PlacementTypes types, FlushReach reach) {
    return !types.empty() &&
           (PlacementType::kGlobal | PlacementType::kPersistent).contains(types) &&
           reach <= FlushReach::kRegion;
}

// Rights that let a remote side in. Those that change memory need kLocalWrite (IBA 10.6.3.1).
inline constexpr AccessRights kRemoteRights =
    AccessRights(Access::kRemoteWrite) | Access::kRemoteRead | Access::kRemoteAtomic;
inline constexpr AccessRights kFlushRights = Access::kFlushGlobal | Access::kFlushPersistent;
inline constexpr AccessRights kRightsThatNeedLocalWrite =
    Access::kRemoteWrite | Access::kRemoteAtomic;

}  // namespace simverbs
