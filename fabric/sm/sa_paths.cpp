// Paths between ports as the forwarding tables lead (IBA 15.2.5.16, 15.2.5.20).
#include <algorithm>

#include "fabric/core/rate.hpp"
#include "fabric/core/rate_code.hpp"
#include "fabric/sm/subnet_administration.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Method;
using mad::Status;
namespace path = mad::path_record;
namespace multi = mad::multi_path_record;

namespace {

constexpr std::uint16_t kFullMember = 0x8000;
constexpr std::uint8_t kDefaultLifetime = 18;  // 4.096 us * 2^18: as OpenSM
constexpr std::uint8_t kMaxHops = 64;

std::uint32_t tenths_of_lane(const SubnetPort& port) {
    switch (port.get(mad::port_info::kExtendedSpeedActive)) {
        case 1:
            return 140;
        case 2:
            return 250;
        case 4:
            return 500;
        case 8:
            return 1000;
        default:
            return 25U * static_cast<std::uint32_t>(port.get(mad::port_info::kSpeedActive));
    }
}

std::uint32_t tenths_of(const SubnetPort& port) {
    const auto width = static_cast<LinkWidth>(port.get(mad::port_info::kWidthActive));
    return tenths_of_lane(port) * properties(width).lanes;
}

bool fits(std::uint64_t selector, std::uint64_t asked, std::uint64_t offered) {
    switch (static_cast<mad::Selector>(selector)) {
        case mad::Selector::kGreater:
            return offered > asked;
        case mad::Selector::kLess:
            return offered >= 1 && asked > 1;  // a path may always be used for less
        case mad::Selector::kExactly:
            return offered >= asked;
        case mad::Selector::kLargest:
            return true;
    }
    return false;
}

// The first that both have, one of them as a full member (IBA 10.9.3).
std::optional<std::uint16_t> shared_pkey(const SubnetPort& a, const SubnetPort& b,
                                         std::optional<std::uint16_t> wanted) {
    for (const std::uint16_t one : a.pkeys) {
        for (const std::uint16_t other : b.pkeys) {
            const bool same = one != 0 && ((one ^ other) & ~kFullMember) == 0;
            const bool is_wanted = !wanted || ((one ^ *wanted) & ~kFullMember) == 0;
            if (same && is_wanted && ((one | other) & kFullMember) != 0) {
                return one;
            }
        }
    }
    return std::nullopt;
}

}  // namespace

// The properties that a path must have; nothing: whatever there is.
struct SubnetAdministration::PathWish {
    std::optional<std::uint16_t> pkey;
    std::optional<std::uint8_t> sl;
    std::optional<Lid> dlid;
    std::optional<Lid> slid;
    std::uint64_t mtu_selector = 3;
    std::uint64_t mtu = 0;
    std::uint64_t rate_selector = 3;
    std::uint64_t rate = 0;
};

std::optional<SubnetPortRef> SubnetAdministration::find_gid(const Gid& gid) const {
    const auto end_ports = subnet().end_ports();
    const auto found = end_ports.find(Guid(gid.interface_id()));
    const bool is_ours = gid.subnet_prefix() == sm_.policy().subnet_prefix ||
                         gid.subnet_prefix() == kDefaultSubnetPrefix;
    return found == end_ports.end() || !is_ours ? std::nullopt : std::optional(found->second);
}

// By GID, by LID, or all.
std::vector<SubnetPortRef> SubnetAdministration::ends_of(const Query& query, bool source) const {
    const unsigned gid_bit = source ? path::kHasSgid : path::kHasDgid;
    const unsigned lid_bit = source ? path::kHasSlid : path::kHasDlid;
    if (query.has(gid_bit)) {
        const auto found = find_gid(mad::get_gid(query.data, source ? path::kSgid : path::kDgid));
        return found ? std::vector{*found} : std::vector<SubnetPortRef>{};
    }
    if (query.has(lid_bit)) {
        const auto found = subnet().owner_of(Lid(
            static_cast<std::uint16_t>(mad::get(query.data, source ? path::kSlid : path::kDlid))));
        return found ? std::vector{*found} : std::vector<SubnetPortRef>{};
    }
    std::vector<SubnetPortRef> all;
    for (const auto& [guid, ref] : subnet().end_ports()) {
        all.push_back(ref);
    }
    return all;
}

SubnetAdministration::Answer SubnetAdministration::paths(const Query& query) const {
    if (query.method != Method::kGet && query.method != Method::kGetTable) {
        return {Status::kBadMethodOrAttribute};
    }
    const auto read = [&query](mad::Field field) { return mad::get(query.data, field); };
    const auto lid_if = [&](unsigned bit, mad::Field field) {
        return query.has(bit) ? std::optional(Lid(static_cast<std::uint16_t>(read(field))))
                              : std::nullopt;
    };
    PathWish wish;
    wish.dlid = lid_if(path::kHasDlid, path::kDlid);
    wish.slid = lid_if(path::kHasSlid, path::kSlid);
    if (query.has(path::kHasPkey)) {
        wish.pkey = static_cast<std::uint16_t>(read(path::kPkey));
    }
    if (query.has(path::kHasSl)) {
        wish.sl = static_cast<std::uint8_t>(read(path::kSl));
    }
    if (query.has(path::kHasMtu)) {
        wish.mtu = read(path::kMtu);
        wish.mtu_selector = query.has(path::kHasMtuSelector) ? read(path::kMtuSelector) : 2;
    }
    if (query.has(path::kHasRate)) {
        wish.rate = read(path::kRate);
        wish.rate_selector = query.has(path::kHasRateSelector) ? read(path::kRateSelector) : 2;
    }
    Answer answer;
    for (const SubnetPortRef& from : ends_of(query, true)) {
        for (const SubnetPortRef& to : ends_of(query, false)) {
            add_path(wish, from, to, answer.records);
        }
    }
    if (query.method == Method::kGet && answer.records.size() > 1) {
        answer.records.resize(1);
    }
    return answer;
}

SubnetAdministration::Answer SubnetAdministration::multi_paths(const Query& query) const {
    if (query.method != Method::kGetMulti) {
        return {Status::kBadMethodOrAttribute};
    }
    const auto sources = mad::get(query.data, multi::kSourceCount);
    const auto destinations = mad::get(query.data, multi::kDestinationCount);
    if (sources == 0 || destinations == 0 ||
        multi::kGids + 16 * (sources + destinations) > query.data.size()) {
        return {Status::kSaInvalidRequest};
    }
    PathWish wish;
    if (query.has(multi::kHasPkey)) {
        wish.pkey = static_cast<std::uint16_t>(mad::get(query.data, multi::kPkey));
    }
    if (query.has(multi::kHasSl)) {
        wish.sl = static_cast<std::uint8_t>(mad::get(query.data, multi::kSl));
    }
    Answer answer;
    for (std::size_t i = 0; i < sources; ++i) {
        for (std::size_t j = sources; j < sources + destinations; ++j) {
            const auto from = find_gid(mad::get_gid(query.data, multi::kGids + 16 * i));
            const auto to = find_gid(mad::get_gid(query.data, multi::kGids + 16 * j));
            if (!from || !to) {
                return {Status::kSaInvalidGid};
            }
            add_path(wish, *from, *to, answer.records);
        }
    }
    if (query.has(multi::kHasNumbPath)) {
        const std::uint64_t most = mad::get(query.data, multi::kNumbPath);
        answer.records.resize(std::min<std::size_t>(answer.records.size(), most));
    }
    return answer;
}

// Follows the tables; no record where they do not lead there, or where it is not as wished.
void SubnetAdministration::add_path(const PathWish& wish, const SubnetPortRef& from,
                                    const SubnetPortRef& to, std::vector<Record>& records) const {
    const SubnetPort& source = *subnet().find(from);
    const SubnetPort& target = *subnet().find(to);
    const auto pkey = shared_pkey(source, target, wish.pkey);
    if (source.lid() == kNoLid || target.lid() == kNoLid || !pkey) {
        return;
    }
    const Lid dlid = wish.dlid.value_or(target.lid());
    std::uint64_t mtu = source.get(mad::port_info::kNeighborMtu);
    std::uint32_t tenths = tenths_of(source);
    SubnetPortRef at = from;
    for (std::uint8_t hops = 0; at != to; ++hops) {
        const SubnetNode& node = subnet().nodes.at(at.node);
        std::uint8_t out = at.port;
        if (node.is_switch()) {
            const bool known = dlid.value() < node.linear_table.size();
            out = known ? node.linear_table[dlid.value()] : mad::tables::kNoRoute;
            if (out == 0 && at.node == to.node) {
                break;
            }
        }
        const SubnetPort* const leaves = subnet().find({at.node, out});
        if (hops == kMaxHops || leaves == nullptr || !leaves->peer) {
            return;
        }
        mtu = std::min(mtu, leaves->get(mad::port_info::kNeighborMtu));
        tenths = std::min(tenths, tenths_of(*leaves));
        at = *leaves->peer;
        if (!subnet().nodes.at(at.node).is_switch() && at != to) {
            return;
        }
    }
    if (!fits(wish.mtu_selector, wish.mtu, mtu) ||
        !fits(wish.rate_selector, tenths_of_rate_code(wish.rate), tenths)) {
        return;
    }
    const auto exactly = static_cast<std::uint64_t>(mad::Selector::kExactly);
    Record& record = records.emplace_back(path::kBytes);
    mad::set_gid(record, path::kDgid, gid_of(target.guid));
    mad::set_gid(record, path::kSgid, gid_of(source.guid));
    mad::set(record, path::kDlid, dlid.value());
    mad::set(record, path::kSlid, wish.slid.value_or(source.lid()).value());
    mad::set(record, path::kReversible, 1);
    mad::set(record, path::kPkey, *pkey);
    mad::set(record, path::kSl, wish.sl.value_or(0));
    mad::set(record, path::kMtuSelector, exactly);
    mad::set(record, path::kMtu, mtu);
    mad::set(record, path::kRateSelector, exactly);
    mad::set(record, path::kRate, rate_code_of(tenths));
    mad::set(record, path::kLifetimeSelector, exactly);
    mad::set(record, path::kLifetime, kDefaultLifetime);
}

}  // namespace fabric
