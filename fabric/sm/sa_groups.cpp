// Multicast groups (IBA 15.2.5.17): made by the first full member that joins, gone with the last
// one. Those that only send do not get what is sent.
#include <algorithm>
#include <set>
#include <utility>

#include "fabric/net/ethernet.hpp"
#include "fabric/sm/subnet_administration.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Method;
using mad::Status;
namespace member = mad::mc_member_record;

namespace {

constexpr std::uint8_t kDefaultMtu = static_cast<std::uint8_t>(Mtu::k2048);
constexpr std::uint8_t kDefaultRate = 3;  // 10 Gb/s
constexpr std::uint8_t kDefaultLifetime = 18;

// MGIDs that an SA makes up: transient, of this subnet (IBA 15.2.5.17.2).
Gid made_up_mgid(std::uint32_t number) {
    Gid gid{{0xFF, 0x12, 0xA0, 0x1C, 0xFE, 0x80}};
    for (std::size_t i = 0; i < 4; ++i) {
        gid.bytes[15 - i] = static_cast<std::uint8_t>(number >> 8 * i);
    }
    return gid;
}

}  // namespace

SubnetAdministration::Record SubnetAdministration::member_record(const Group& group, Guid port,
                                                                 std::uint8_t state) const {
    Record record = group.record;
    mad::set_gid(record, member::kPortGid, port == Guid{} ? Gid{} : gid_of(port));
    mad::set(record, member::kJoinState, state);
    return record;
}

// One record a member for those who may know them, else one a group.
SubnetAdministration::Answer SubnetAdministration::members(const Query& query) {
    if (query.method != Method::kGet && query.method != Method::kGetTable) {
        return {Status::kBadMethodOrAttribute};
    }
    Answer answer;
    for (const auto& [mgid, group] : groups_) {
        if (!query.is_trusted) {
            std::uint8_t states = 0;
            for (const auto& [port, state] : group.members) {
                states = static_cast<std::uint8_t>(states | state);
            }
            answer.records.push_back(member_record(group, Guid{}, states));
            continue;
        }
        for (const auto& [port, state] : group.members) {
            answer.records.push_back(member_record(group, port, state));
        }
    }
    std::erase_if(answer.records, [&query](const Record& record) {
        return !mad::selects(query.mask, member::kComponents, query.data, record);
    });
    return answer;
}

bool SubnetAdministration::is_kept(const Group& group) {
    return std::any_of(group.members.begin(), group.members.end(),
                       [](const auto& entry) { return member::keeps_group(entry.second); });
}

Lid SubnetAdministration::free_mlid() const {
    std::set<std::uint64_t> used;
    for (const auto& [mgid, group] : groups_) {
        used.insert(mad::get(group.record, member::kMlid));
    }
    std::uint16_t mlid = kFirstMulticastLid.value();
    while (used.contains(mlid)) {
        ++mlid;
    }
    return Lid(mlid);
}

void SubnetAdministration::join(const Query& query) {
    const Gid asked = mad::get_gid(query.data, member::kMgid);
    const auto state = static_cast<std::uint8_t>(mad::get(query.data, member::kJoinState));
    const auto port = find_gid(mad::get_gid(query.data, member::kPortGid));
    const bool has_mgid = query.has(0) && asked != Gid{};
    if ((query.mask & member::kJoin & ~std::uint64_t{1}) != (member::kJoin & ~std::uint64_t{1}) ||
        state == 0 || !port || (has_mgid && !is_multicast(asked))) {
        respond(query.received, {!port ? Status::kSaInvalidGid : Status::kSaInvalidRequest});
        return;
    }
    auto found = has_mgid ? groups_.find(asked) : groups_.end();
    if (found == groups_.end()) {
        const std::uint64_t needed = member::kCreate & ~std::uint64_t{has_mgid ? 0U : 1U};
        if (!member::keeps_group(state) || (query.mask & needed) != needed) {
            respond(query.received, {member::keeps_group(state) ? Status::kSaInsufficientComponents
                                                                : Status::kSaInvalidRequest});
            return;
        }
        Gid mgid = asked;
        for (std::uint32_t number = 1; !has_mgid && (mgid == Gid{} || groups_.contains(mgid));
             ++number) {
            mgid = made_up_mgid(number);
        }
        Group group{.record = Record(query.data.begin(), query.data.begin() + member::kBytes)};
        mad::set_gid(group.record, member::kMgid, mgid);
        mad::set(group.record, member::kMlid, free_mlid().value());
        const auto by_default = [&](unsigned bit, mad::Field selector, mad::Field field,
                                    std::uint64_t value) {
            mad::set(group.record, selector, static_cast<std::uint64_t>(mad::Selector::kExactly));
            if (!query.has(bit) || mad::get(group.record, field) == 0) {
                mad::set(group.record, field, value);
            }
        };
        by_default(5, member::kMtuSelector, member::kMtu, kDefaultMtu);
        by_default(9, member::kRateSelector, member::kRate, kDefaultRate);
        by_default(11, member::kLifetimeSelector, member::kLifetime, kDefaultLifetime);
        if (!query.has(15)) {
            mad::set(group.record, member::kScope, mgid.bytes[1] & 0xF);
        }
        mad::set(group.record, member::kProxyJoin, 0);
        found = groups_.emplace(mgid, std::move(group)).first;
        report_gid(66, mgid);
    } else {
        // Compares the components that the request names with those of the group.
        constexpr std::uint64_t kCompared =
            1U << 2 | 1U << 3 | 1U << 6 | 1U << 7 | 1U << 12 | 1U << 13;
        Record present = found->second.record;
        if (!mad::selects(query.mask & kCompared, member::kComponents, query.data, present)) {
            respond(query.received, {Status::kSaInvalidRequest});
            return;
        }
    }
    const Guid guid = subnet().find(*port)->guid;
    std::uint8_t& states = found->second.members[guid];
    states = static_cast<std::uint8_t>(states | state);
    const Answer answer{.records = {member_record(found->second, guid, states)}};
    // It is answered when frames find their way.
    const std::vector<std::uint8_t> bytes(query.received.bytes.begin(), query.received.bytes.end());
    publish_groups([this, answer, bytes, agent = query.received.agent, from = query.received.from] {
        respond({.agent = agent, .bytes = bytes, .from = from}, answer);
    });
}

void SubnetAdministration::leave(const Query& query) {
    const auto found = groups_.find(mad::get_gid(query.data, member::kMgid));
    const auto port = find_gid(mad::get_gid(query.data, member::kPortGid));
    const Guid guid = port ? subnet().find(*port)->guid : Guid{};
    if (found == groups_.end() || !found->second.members.contains(guid)) {
        respond(query.received, {Status::kSaInvalidRequest});
        return;
    }
    std::uint8_t& states = found->second.members[guid];
    const auto left = static_cast<std::uint8_t>(mad::get(query.data, member::kJoinState) & states);
    if (left == 0) {
        respond(query.received, {Status::kSaInvalidRequest});
        return;
    }
    const Answer answer{.records = {member_record(found->second, guid, left)}};
    states = static_cast<std::uint8_t>(states & ~left);
    if (states == 0) {
        found->second.members.erase(guid);
    }
    if (!is_kept(found->second)) {
        report_gid(67, found->first);
        groups_.erase(found);
    }
    respond(query.received, answer);
    publish_groups(nullptr);
}

void SubnetAdministration::publish_groups(std::function<void()> done) {
    SweepingSm::Groups groups;
    for (const auto& [mgid, group] : groups_) {
        const Lid mlid(static_cast<std::uint16_t>(mad::get(group.record, member::kMlid)));
        for (const auto& [port, state] : group.members) {
            groups[mlid].push_back({port, member::receives(state)});
        }
    }
    sm_.set_groups(std::move(groups), std::move(done));
}

}  // namespace fabric
