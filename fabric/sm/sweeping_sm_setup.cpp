// The set-up of a subnet by a sweeping subnet manager: addresses, partitions, tables and states;
// always only what differs from what it has read.
#include <algorithm>
#include <deque>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/sm/sm_events.hpp"
#include "fabric/sm/sweeping_sm.hpp"

namespace fabric {

using mad::Attribute;
using mad::Datagram;
namespace info = mad::port_info;

namespace {

constexpr std::uint16_t kFullMember = 0x8000;

// A LID that is in use, and by how much of an LMC.
class LidPool {
  public:
    [[nodiscard]] bool is_free(Lid first, unsigned lmc) const {
        const std::uint32_t count = 1U << lmc;
        if (first.value() % count != 0 || !is_unicast(first) ||
            first.value() + count - 1 > kLastUnicastLid.value()) {
            return false;
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            if (used_[first.value() + i]) {
                return false;
            }
        }
        return true;
    }
    void take(Lid first, unsigned lmc) {
        for (std::uint32_t i = 0; i < 1U << lmc; ++i) {
            used_[first.value() + i] = true;
        }
    }
    Lid take_next(unsigned lmc) {
        std::uint32_t lid = std::max(next_, 1U << lmc) >> lmc << lmc;
        while (lid <= kLastUnicastLid.value() &&
               !is_free(Lid(static_cast<std::uint16_t>(lid)), lmc)) {
            lid += 1U << lmc;
        }
        SIMVERBS_ASSERT(lid <= kLastUnicastLid.value(), "there are more ports than LIDs");
        next_ = lid;
        const Lid found(static_cast<std::uint16_t>(lid));
        take(found, lmc);
        return found;
    }

  private:
    std::vector<bool> used_ = std::vector<bool>(kLastUnicastLid.value() + 1U);
    std::uint32_t next_ = 1;
};

// As a Set has it that is to change nothing but what is then edited.
std::array<std::uint8_t, info::kBytes> unchanged(const SubnetPort& port) {
    std::array<std::uint8_t, info::kBytes> data = port.info;
    for (const mad::Field field :
         {info::kState, info::kPhysicalState, info::kDownDefault, info::kWidthEnabled,
          info::kSpeedEnabled, info::kExtendedSpeedEnabled, info::kClientReregister}) {
        mad::set(data, field, 0);
    }
    return data;
}

// As its agent says it.
std::string description_of(const SubnetNode& node) {
    const auto end = std::ranges::find(node.description, 0);
    return {node.description.begin(), end};
}

}  // namespace

// Ports that have had a LID keep it, then those that come with one, then the others by GUID.
void SweepingSm::assign_lids() {
    const auto end_ports = subnet_.end_ports();
    const auto lmc_of = [this](const SubnetPortRef& ref) {
        return ref.port == 0 ? 0U : static_cast<unsigned>(policy_.lmc);
    };
    LidPool pool;
    for (const auto& [guid, lid] : lids_) {  // also of those that are away
        const auto found = end_ports.find(guid);
        pool.take(lid, found == end_ports.end() ? policy_.lmc : lmc_of(found->second));
    }
    for (const auto& [guid, ref] : end_ports) {
        const Lid present = subnet_.find(ref)->lid();
        if (!lids_.contains(guid) && pool.is_free(present, lmc_of(ref))) {
            pool.take(present, lmc_of(ref));
            lids_[guid] = present;
        }
    }
    for (const auto& [guid, ref] : end_ports) {
        if (!lids_.contains(guid)) {
            lids_[guid] = pool.take_next(lmc_of(ref));
        }
    }
}

void SweepingSm::configure_ports() {
    for (const auto& [guid, ref] : subnet_.end_ports()) {
        configure_end_port(ref);
        write_pkeys(ref);
    }
    for (const auto& [guid, node] : subnet_.nodes) {
        for (std::size_t number = 1; node.is_switch() && number < node.ports.size(); ++number) {
            if (node.ports[number].is_known && node.ports[number].peer) {
                configure_link({guid, static_cast<std::uint8_t>(number)});
            }
        }
    }
}

// A port that is about to become ACTIVE may have lost its subscriptions: it is asked to make them
// again, as OpenSM does.
void SweepingSm::configure_end_port(const SubnetPortRef& ref) {
    const SubnetPort& port = *subnet_.find(ref);
    std::array<std::uint8_t, info::kBytes> wanted = unchanged(port);
    const std::array<std::uint8_t, info::kBytes> before = wanted;
    mad::set(wanted, info::kLid, lids_.at(port.guid).value());
    mad::set(wanted, info::kLmc, ref.port == 0 ? 0 : policy_.lmc);
    mad::set(wanted, info::kSmLid, lids_.at(port_.port().attributes().guid).value());
    mad::set(wanted, info::kSmSl, 0);
    mad::set(wanted, info::kGidPrefix, policy_.subnet_prefix);
    mad::set(wanted, info::kMkey, policy_.m_key);
    const SubnetPort* const peer = port.peer ? subnet_.find(*port.peer) : nullptr;
    if (peer != nullptr) {
        mad::set(wanted, info::kNeighborMtu,
                 std::min(port.get(info::kMtuCap), peer->get(info::kMtuCap)));
        mad::set(wanted, info::kOperationalVls,
                 std::min(port.get(info::kVlCap), peer->get(info::kVlCap)));
    }
    if (ref.port != 0 && port.state() == static_cast<unsigned>(PortState::kInit)) {
        mad::set(wanted, info::kClientReregister, 1);
    }
    if (wanted != before) {
        write_port(ref, [wanted](mad::Bytes data) { std::ranges::copy(wanted, data.begin()); });
    }
}

void SweepingSm::configure_link(const SubnetPortRef& ref) {
    const SubnetPort& port = *subnet_.find(ref);
    const SubnetPort* const peer = subnet_.find(*port.peer);
    if (peer == nullptr) {
        return;
    }
    const std::uint64_t mtu = std::min(port.get(info::kMtuCap), peer->get(info::kMtuCap));
    const std::uint64_t vls = std::min(port.get(info::kVlCap), peer->get(info::kVlCap));
    if (port.get(info::kNeighborMtu) != mtu || port.get(info::kOperationalVls) != vls) {
        write_port(ref, [mtu, vls](mad::Bytes data) {
            mad::set(data, info::kNeighborMtu, mtu);
            mad::set(data, info::kOperationalVls, vls);
        });
    }
}

void SweepingSm::write_port(const SubnetPortRef& ref, const std::function<void(mad::Bytes)>& edit) {
    const SubnetPort& port = *subnet_.find(ref);
    std::array<std::uint8_t, info::kBytes> data = unchanged(port);
    edit(data);
    smps_.set(port.path, Attribute::kPortInfo, ref.port, data, [this, ref](const Datagram* answer) {
        SubnetPort* const told = subnet_.find(ref);
        if (answer != nullptr && answer->get(mad::smp::kStatus) == 0 && told != nullptr) {
            std::ranges::copy(answer->smp_data(), told->info.begin());
        }
    });
}

std::vector<std::uint16_t> SweepingSm::pkeys_of(Guid port) const {
    if (const auto own = own_pkeys_.find(port); own != own_pkeys_.end()) {
        return own->second;
    }
    std::vector<std::uint16_t> pkeys;
    for (const Partition& partition : policy_.partitions) {
        const auto member = partition.members.find(port);
        const std::optional<bool> is_full =
            member != partition.members.end() ? std::optional(member->second) : partition.everyone;
        if (is_full) {
            pkeys.push_back(
                static_cast<std::uint16_t>(partition.pkey | (*is_full ? kFullMember : 0)));
        }
    }
    return pkeys;
}

void SweepingSm::write_pkeys(const SubnetPortRef& ref) {
    SubnetPort& port = *subnet_.find(ref);
    std::vector<std::uint16_t> wanted = pkeys_of(port.guid);
    wanted.resize(std::max(wanted.size(), port.pkeys.size()), 0);
    port.pkeys.resize(wanted.size(), 0);
    for (std::size_t first = 0; first < wanted.size(); first += mad::tables::kPkeysPerBlock) {
        std::array<std::uint8_t, mad::smp::kDataBytes> data{};
        bool differs = false;
        const std::size_t end = std::min(wanted.size(), first + mad::tables::kPkeysPerBlock);
        for (std::size_t i = first; i < end; ++i) {
            mad::set(data, mad::element(mad::tables::kFirstPkey, i - first), wanted[i]);
            differs |= wanted[i] != port.pkeys[i];
        }
        if (differs) {
            smps_.set(port.path, Attribute::kPkeyTable,
                      static_cast<std::uint32_t>(first / mad::tables::kPkeysPerBlock), data,
                      nullptr);
        }
    }
    port.pkeys = wanted;
}

// Switches by GUID, destinations by LID.
routing::Graph SweepingSm::make_graph() const {
    routing::Graph graph;
    std::map<Guid, routing::SwitchIndex> index;
    for (const auto& [guid, node] : subnet_.nodes) {
        if (node.is_switch()) {
            index.emplace(guid, graph.add_switch(node.port_count()));
        }
    }
    for (const auto& [guid, number] : index) {
        const SubnetNode& node = subnet_.nodes.at(guid);
        for (std::size_t port = 1; port < node.ports.size(); ++port) {
            const auto& peer = node.ports[port].peer;
            if (peer && index.contains(peer->node)) {
                graph.connect(number, static_cast<std::uint16_t>(port), index.at(peer->node),
                              peer->port);
            }
        }
    }
    std::vector<routing::Destination> destinations;
    for (const auto& [guid, ref] : subnet_.end_ports()) {
        const SubnetPort& port = *subnet_.find(ref);
        const std::optional<SubnetPortRef> last = ref.port == 0 ? std::optional(ref) : port.peer;
        if (!last || !index.contains(last->node)) {
            continue;
        }
        const unsigned lmc = ref.port == 0 ? 0U : policy_.lmc;
        for (std::uint32_t i = 0; i < 1U << lmc; ++i) {
            const Lid lid(static_cast<std::uint16_t>(lids_.at(guid).value() + i));
            destinations.push_back({lid, index.at(last->node), last->port});
        }
    }
    std::ranges::sort(destinations, {}, &routing::Destination::lid);
    for (const routing::Destination& one : destinations) {
        graph.add_destination(one);
    }
    return graph;
}

void SweepingSm::write_routes() {
    std::vector<std::string> names;
    for (const auto& [guid, node] : subnet_.nodes) {
        if (node.is_switch()) {
            names.push_back(description_of(node));
        }
    }
    routing::Routes routes = routing::make_routes(make_graph(), names, policy_.routing);
    routing::SwitchIndex next = 0;
    const std::string loop = describe(routes.report.credit_loop, names);
    bus_.emit(loop_.now(), RoutesComputed{own_node(), routes.engine, routes.refused, loop});
    for (auto& [guid, node] : subnet_.nodes) {
        if (node.is_switch()) {
            std::vector<std::uint8_t> table;
            for (const std::uint16_t port : routes.tables.row(next++)) {
                table.push_back(port == routing::Tables::kNoRoute
                                    ? mad::tables::kNoRoute
                                    : static_cast<std::uint8_t>(port));
            }
            write_linear_table(node, table);
        }
    }
    engine_ = routes.engine;
    refused_ = std::move(routes.refused);
}

void SweepingSm::write_linear_table(SubnetNode& node, const std::vector<std::uint8_t>& table) {
    constexpr std::size_t kBlock = mad::tables::kRoutesPerBlock;
    const SmpWindow::Path& path = node.ports[0].path;
    const std::uint64_t top = table.empty() ? 0 : table.size() - 1;
    const bool has_changed = mad::get(node.switch_info, mad::switch_info::kPortStateChange) != 0;
    if (has_changed || mad::get(node.switch_info, mad::switch_info::kLinearTableTop) != top) {
        mad::set(node.switch_info, mad::switch_info::kLinearTableTop, top);
        mad::set(node.switch_info, mad::switch_info::kPortStateChange, has_changed ? 1 : 0);
        smps_.set(path, Attribute::kSwitchInfo, 0, node.switch_info, nullptr);
    }
    const std::size_t entries = std::max(table.size(), node.linear_table.size());
    for (std::size_t first = 0; first < entries; first += kBlock) {
        std::array<std::uint8_t, kBlock> data{};
        data.fill(mad::tables::kNoRoute);
        bool differs = false;
        for (std::size_t i = first; i < first + kBlock; ++i) {
            const std::uint8_t wanted = i < table.size() ? table[i] : mad::tables::kNoRoute;
            data[i - first] = wanted;
            differs |= i >= node.linear_table.size()
                           ? first >= node.linear_table.size() || wanted != mad::tables::kNoRoute
                           : node.linear_table[i] != wanted;
        }
        if (differs) {
            bus_.emit(loop_.now(), RoutesChanged{own_node(), node.guid.value(), first / kBlock});
            smps_.set(path, Attribute::kLinearForwardingTable,
                      static_cast<std::uint32_t>(first / kBlock), data, nullptr);
        }
    }
    node.linear_table = table;
}

void SweepingSm::set_groups(Groups groups, std::function<void()> done) {
    groups_ = std::move(groups);
    if (done) {
        group_waiters_.push_back(std::move(done));
    }
    if (is_sweeping_) {
        sweep_again_ = true;
        return;
    }
    write_groups();
    smps_.then([this] {
        for (const auto& waiter : std::exchange(group_waiters_, {})) {
            waiter();
        }
    });
}

// One tree for each group: from the switch of its first member the shortest paths to all others.
void SweepingSm::write_groups() {
    std::map<Guid, std::map<Lid, std::vector<bool>>> tables;
    const auto end_ports = subnet_.end_ports();
    for (const auto& entry : groups_) {
        const Lid group = entry.first;
        struct Leaf {
            SubnetPortRef at;  // the switch port to a member
            bool receives;
        };
        std::vector<Leaf> leaves;
        for (const GroupPort& member : entry.second) {
            const auto found = end_ports.find(member.port);
            const SubnetPort* const port =
                found == end_ports.end() ? nullptr : subnet_.find(found->second);
            if (port != nullptr && port->peer && subnet_.nodes.at(port->peer->node).is_switch()) {
                leaves.push_back({*port->peer, member.receives});
            }
        }
        if (leaves.empty()) {
            continue;
        }
        std::map<Guid, SubnetPortRef> towards_root;  // the port of a switch that leads there
        std::deque<Guid> frontier{leaves.front().at.node};
        towards_root.emplace(leaves.front().at.node, SubnetPortRef{});
        while (!frontier.empty()) {
            const SubnetNode& node = subnet_.nodes.at(frontier.front());
            frontier.pop_front();
            for (const SubnetPort& port : node.ports) {
                if (port.peer && subnet_.nodes.at(port.peer->node).is_switch() &&
                    towards_root.emplace(port.peer->node, *port.peer).second) {
                    frontier.push_back(port.peer->node);
                }
            }
        }
        const auto mark = [&](const SubnetPortRef& ref) {
            std::vector<bool>& ports = tables[ref.node][group];
            ports.resize(subnet_.nodes.at(ref.node).ports.size());
            const bool is_new = !ports[ref.port];
            ports[ref.port] = true;
            return is_new;
        };
        for (const Leaf& leaf : leaves) {
            if (leaf.receives) {
                mark(leaf.at);
            }
            for (SubnetPortRef up = towards_root[leaf.at.node]; up.port != 0;) {
                const SubnetPortRef down = *subnet_.find(up)->peer;
                mark(down);
                if (!mark(up)) {
                    break;
                }
                up = towards_root[down.node];
            }
        }
    }
    for (auto& [guid, node] : subnet_.nodes) {
        if (node.is_switch()) {
            write_multicast_table(node, tables[guid]);
        }
    }
}

void SweepingSm::write_multicast_table(SubnetNode& node,
                                       const std::map<Lid, std::vector<bool>>& table) {
    constexpr std::size_t kBlock = mad::tables::kMasksPerBlock;
    std::map<std::uint32_t, bool> blocks;  // that hold a group whose ports differ
    const auto compare = [&](const auto& ones, const auto& others) {
        for (const auto& [group, ports] : ones) {
            const auto other = others.find(group);
            if (other == others.end() || other->second != ports) {
                blocks[static_cast<std::uint32_t>((group.value() - kFirstMulticastLid.value()) /
                                                  kBlock)] = true;
            }
        }
    };
    compare(table, node.multicast_table);
    compare(node.multicast_table, table);
    for (const auto& [block, differs] : blocks) {
        for (std::size_t position = 0; position * 16 < node.ports.size(); ++position) {
            std::array<std::uint8_t, mad::smp::kDataBytes> data{};
            for (std::size_t i = 0; i < kBlock; ++i) {
                const Lid group(
                    static_cast<std::uint16_t>(kFirstMulticastLid.value() + block * kBlock + i));
                const auto found = table.find(group);
                std::uint64_t mask = 0;
                for (std::size_t bit = 0; found != table.end() && bit < 16; ++bit) {
                    const std::size_t port = position * 16 + bit;
                    mask |= port < found->second.size() && found->second[port] ? 1U << bit : 0U;
                }
                mad::set(data, mad::element(mad::tables::kFirstPortMask, i), mask);
            }
            smps_.set(node.ports[0].path, Attribute::kMulticastForwardingTable,
                      static_cast<std::uint32_t>(position << 28 | block), data, nullptr);
        }
    }
    node.multicast_table = table;
}

// Both ends of all links are ARMED before any is ACTIVE.
void SweepingSm::set_states(PortState from, PortState to) {
    for (const auto& [guid, node] : subnet_.nodes) {
        for (std::size_t number = 1; number < node.ports.size(); ++number) {
            const SubnetPort& port = node.ports[number];
            if (port.is_known && port.peer && port.state() == static_cast<unsigned>(from)) {
                write_port({guid, static_cast<std::uint8_t>(number)}, [to](mad::Bytes data) {
                    mad::set(data, info::kState, static_cast<std::uint64_t>(to));
                });
            }
        }
    }
}

}  // namespace fabric
