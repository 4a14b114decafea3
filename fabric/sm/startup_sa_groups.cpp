// Multicast groups of the start-up subnet administration: made by the first full member that joins,
// gone with the last one. Those that only send do not get what is sent.
#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "fabric/net/ethernet.hpp"
#include "fabric/sm/startup_sa.hpp"

namespace fabric {

using mad::Status;
namespace member = mad::mc_member_record;

namespace {

constexpr std::uint8_t kDefaultMtu = static_cast<std::uint8_t>(Mtu::k2048);
constexpr std::uint8_t kDefaultRate = 3;  // 10 Gb/s
constexpr std::uint8_t kDefaultLifetime = 18;

std::uint8_t join_state(const mad::Datagram& query) {
    return static_cast<std::uint8_t>(
        mad::get(query.from(mad::sa::kDataOffset), member::kJoinState));
}

// A member's own components of a group's record.
std::vector<std::uint8_t> member_record(std::vector<std::uint8_t> record, const Gid& port,
                                        std::uint8_t state) {
    mad::set_gid(record, member::kPortGid, port);
    mad::set(record, member::kJoinState, state);
    return record;
}

// Towards the root of the tree that reaches all switches, by switch: nullptr at the root.
using Tree = std::map<const Switch*, const Port*>;

Tree tree_from(const Switch& root) {
    Tree tree{{&root, nullptr}};
    std::deque<const Switch*> frontier{&root};
    while (!frontier.empty()) {
        const Switch& at = *frontier.front();
        frontier.pop_front();
        for (std::uint16_t number = 1; number <= at.port_count(); ++number) {
            const Port& port = at.port(PortNumber{number});
            const Port* const peer = port.state() == PortState::kActive ? port.peer() : nullptr;
            const auto* const next =
                peer == nullptr ? nullptr : dynamic_cast<const Switch*>(&peer->node());
            if (next != nullptr && tree.emplace(next, peer).second) {
                frontier.push_back(next);
            }
        }
    }
    return tree;
}

using Tables = std::map<const Node*, std::map<Lid, std::set<std::uint16_t>>>;

// Marks the ports between a member and the root, and the one to a member that receives.
void mark_branch(const Port& leaf, bool receives, Lid group, const Tree& tree, Tables& tables) {
    const auto mark = [&](const Port& port) {
        return tables[&port.node()][group].insert(port.number().value()).second;
    };
    if (receives) {
        mark(leaf);
    }
    const auto* at = dynamic_cast<const Switch*>(&leaf.node());
    for (auto up = tree.find(at); up != tree.end() && up->second != nullptr;) {
        const Port& down = *up->second->peer();
        mark(down);
        if (!mark(*up->second)) {
            return;
        }
        up = tree.find(dynamic_cast<const Switch*>(&down.node()));
    }
}

}  // namespace

Lid StartupSa::free_mlid() const {
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

// Transient, of this subnet (IBA 15.2.5.17.2).
Gid StartupSa::free_mgid() const {
    Gid gid{{0xFF, 0x12, 0xA0, 0x1C, 0xFE, 0x80}};
    do {
        for (std::size_t i = gid.bytes.size() - 1; ++gid.bytes[i] == 0; --i) {
        }
    } while (groups_.contains(gid));
    return gid;
}

StartupSa::Group StartupSa::make_group(const mad::Datagram& query, const Gid& mgid) const {
    const mad::ConstBytes data = query.from(mad::sa::kDataOffset).first(member::kBytes);
    Group group{.record = Record(data.begin(), data.end()), .members = {}};
    mad::set_gid(group.record, member::kMgid, mgid);
    mad::set(group.record, member::kMlid, free_mlid().value());
    const auto complete = [&group](mad::Field selector, mad::Field field, std::uint64_t usual) {
        mad::set(group.record, selector, static_cast<std::uint64_t>(mad::Selector::kExactly));
        if (mad::get(group.record, field) == 0) {
            mad::set(group.record, field, usual);
        }
    };
    complete(member::kMtuSelector, member::kMtu, kDefaultMtu);
    complete(member::kRateSelector, member::kRate, kDefaultRate);
    complete(member::kLifetimeSelector, member::kLifetime, kDefaultLifetime);
    mad::set(group.record, member::kScope, mgid.bytes[1] & 0xF);
    mad::set(group.record, member::kProxyJoin, 0);
    return group;
}

StartupSa::Answer StartupSa::join(const mad::Datagram& query) {
    const mad::ConstBytes data = query.from(mad::sa::kDataOffset);
    const std::uint64_t mask = query.get(mad::sa::kComponentMask);
    const std::uint8_t state = join_state(query);
    const Gid asked = mad::get_gid(data, member::kMgid);
    const Gid port_gid = mad::get_gid(data, member::kPortGid);
    const Port* const port = find_gid(port_gid);
    const bool has_mgid = (mask & 1) != 0 && asked != Gid{};
    const std::uint64_t needed = member::kJoin & ~std::uint64_t{1};
    if (port == nullptr) {
        return {Status::kSaInvalidGid};
    }
    if ((mask & needed) != needed || state == 0 || (has_mgid && !is_multicast(asked))) {
        return {Status::kSaInvalidRequest};
    }
    auto found = has_mgid ? groups_.find(asked) : groups_.end();
    if (found == groups_.end()) {
        const std::uint64_t needed_to_make = member::kCreate & ~std::uint64_t{has_mgid ? 0U : 1U};
        if (!member::keeps_group(state)) {
            return {Status::kSaInvalidRequest};
        }
        if ((mask & needed_to_make) != needed_to_make) {
            return {Status::kSaInsufficientComponents};
        }
        const Gid mgid = has_mgid ? asked : free_mgid();
        found = groups_.emplace(mgid, make_group(query, mgid)).first;
    } else {
        // Compares the components that the request names with those of the group.
        constexpr std::uint64_t kCompared =
            1U << 2 | 1U << 3 | 1U << 6 | 1U << 7 | 1U << 12 | 1U << 13;
        if (!mad::selects(mask & kCompared, member::kComponents, data, found->second.record)) {
            return {Status::kSaInvalidRequest};
        }
    }
    std::uint8_t& states = found->second.members[{port->node().id(), port->number()}];
    states = static_cast<std::uint8_t>(states | state);
    write_groups();
    return {.record = member_record(found->second.record, port_gid, states)};
}

StartupSa::Answer StartupSa::leave(const mad::Datagram& query) {
    const mad::ConstBytes data = query.from(mad::sa::kDataOffset);
    const Gid port_gid = mad::get_gid(data, member::kPortGid);
    const auto found = groups_.find(mad::get_gid(data, member::kMgid));
    const Port* const port = find_gid(port_gid);
    if (port == nullptr || found == groups_.end()) {
        return {Status::kSaInvalidRequest};
    }
    const auto present = found->second.members.find({port->node().id(), port->number()});
    if (present == found->second.members.end()) {
        return {Status::kSaInvalidRequest};
    }
    std::uint8_t& states = present->second;
    const auto left = static_cast<std::uint8_t>(join_state(query) & states);
    if (left == 0) {
        return {Status::kSaInvalidRequest};
    }
    Answer answer{.record = member_record(found->second.record, port_gid, left)};
    states = static_cast<std::uint8_t>(states & ~left);
    if (states == 0) {
        found->second.members.erase(present);
    }
    const auto keeps = [](const auto& entry) { return member::keeps_group(entry.second); };
    if (std::ranges::none_of(found->second.members, keeps)) {
        groups_.erase(found);
    }
    write_groups();
    return answer;
}

// One tree for each group: from the switch of a member the shortest paths to all others.
void StartupSa::write_groups() {
    Tables tables;
    for (const auto& [mgid, group] : groups_) {
        const Lid mlid(static_cast<std::uint16_t>(mad::get(group.record, member::kMlid)));
        std::optional<Tree> tree;
        for (const auto& [port, state] : group.members) {
            const Port* const leaf = network_.node(port.first).port(port.second).peer();
            const auto* const forwarder =
                leaf == nullptr ? nullptr : dynamic_cast<const Switch*>(&leaf->node());
            if (forwarder != nullptr) {
                tree = tree ? std::move(tree) : tree_from(*forwarder);
                mark_branch(*leaf, member::receives(state), mlid, *tree, tables);
            }
        }
    }
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        Switch& forwarder = network_.switch_at(i);
        Switch::MulticastTable table;
        for (const auto& [mlid, ports] : tables[&forwarder]) {
            table.emplace(mlid, std::vector<std::uint16_t>(ports.begin(), ports.end()));
        }
        forwarder.set_multicast_table(std::move(table));
    }
}

}  // namespace fabric
