#include "simverbs/server/fabric_changes.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/core/counted.hpp"
#include "fabric/net/ethernet_addresses.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/faults/fabric_change.hpp"
#include "simverbs/server/fabric_lookup.hpp"
#include "simverbs/server/fabric_report.hpp"

namespace simverbs {
namespace {

using fabric::Link;
using fabric::LinkState;
using fabric::NodeKind;
using fabric::PhysicalState;
using fabric::Port;
using fabric::PortNumber;

// "INDEX=VALUE".
struct Entry {
    std::size_t index = 0;
    std::string_view value;
};
std::optional<Entry> entry_of(std::string_view text) {
    const std::size_t equals = text.find('=');
    const auto index = parse_number(text.substr(0, equals));
    if (equals == std::string_view::npos || !index) {
        return std::nullopt;
    }
    return Entry{*index, text.substr(equals + 1)};
}

}  // namespace

FabricAnswer FabricChanges::change_link(FabricAction action, Link& link, const std::string& value) {
    if (action == FabricAction::kLinkUp) {
        return take_up(link);
    }
    if (action == FabricAction::kLinkDown) {
        return take_down(link, value);
    }
    const auto rate = fabric::yaml::parse_link_rate(value);
    if (!rate) {
        return {EINVAL, rate.error()};
    }
    apply(SetLinkRate{link, rate->width, rate->speed}, simulation_);
    return {0, fmt::format("link {} runs at {}\n", link.name(), rate_of(link.end(0)))};
}

FabricAnswer FabricChanges::take_down(Link& link, const std::string& duration) {
    fabric::SimDuration pause{};
    if (!duration.empty()) {
        const auto parsed = fabric::yaml::parse_duration(duration);
        if (!parsed) {
            return {EINVAL, parsed.error()};
        }
        pause = *parsed;
    }
    const fabric::EventKey key(fabric::EventClass::kApplication, link.end(0).node().id(),
                               link.end(0).number(), 0);
    fabric::Timer& mending =
        mending_
            .try_emplace(link.index(), simulation_.loop(), key,
                         static_cast<fabric::EventHandler&>(*this), link.index())
            .first->second;
    mending.cancel();
    apply(SetLinkState{link, LinkState::kDown}, simulation_);
    if (duration.empty()) {
        return {0, fmt::format("link {} is DOWN\n", link.name())};
    }
    mending.arm_in(pause);
    return {0, fmt::format("link {} is DOWN for {}\n", link.name(), duration)};
}

FabricAnswer FabricChanges::take_up(Link& link) {
    if (const auto mending = mending_.find(link.index()); mending != mending_.end()) {
        mending->second.cancel();
    }
    apply(SetLinkState{link, LinkState::kUp}, simulation_);
    if (link.state() == LinkState::kUp) {
        return {0, fmt::format("link {} is UP\n", link.name())};
    }
    const bool is_first = link.end(0).attributes().held != PhysicalState::kLinkUp;
    const Port& held = link.end(is_first ? 0 : 1);
    return {EBUSY, fmt::format("link {} stays DOWN: {} is {}", link.name(), port_name(held),
                               to_string(held.physical_state()))};
}

void FabricChanges::handle(const fabric::Event& event) {
    apply(SetLinkState{simulation_.network().link(event.argument), LinkState::kUp}, simulation_);
}

FabricAnswer FabricChanges::change_port(FabricAction action, Port& port, const std::string& value) {
    const bool is_ethernet = port.attributes().link_layer == fabric::LinkLayer::kEthernet;
    if (action == FabricAction::kPortEnable || action == FabricAction::kPortDisable) {
        return hold(port, action == FabricAction::kPortEnable);
    }
    if (action == FabricAction::kPortAddress) {
        return is_ethernet && port.node().kind() == NodeKind::kHca
                   ? set_address(port, value)
                   : FabricAnswer{EOPNOTSUPP,
                                  fmt::format("{} has no IP address: a host's Ethernet port "
                                              "has one",
                                              port_name(port))};
    }
    if (is_ethernet) {
        return {EOPNOTSUPP, fmt::format("{} is an Ethernet port, which nobody manages; it takes "
                                        "enable, disable and ip",
                                        port_name(port))};
    }
    if (simulation_.subnet_manager() == nullptr) {
        return {EOPNOTSUPP, "this world has no subnet manager of its own"};
    }
    return manage_port(action, port, value);
}

FabricAnswer FabricChanges::manage_port(FabricAction action, Port& port, const std::string& value) {
    const bool is_switch = port.node().kind() == NodeKind::kSwitch;
    if (is_switch && (action != FabricAction::kPortLid || port.number() != PortNumber{0})) {
        return {EOPNOTSUPP,
                fmt::format("{}: of a switch only port 0 has an address, and that is its LID",
                            port_name(port))};
    }
    switch (action) {
        case FabricAction::kPortLid:
            return set_lid(port, value);
        case FabricAction::kPortPkeys:
            return set_pkeys(port, value);
        case FabricAction::kPortGid:
            return set_gid(port, value);
        default:
            apply(AskToReregister{port}, simulation_);
            return {0, fmt::format("{} is asked to register again\n", port_name(port))};
    }
}

FabricAnswer FabricChanges::hold(Port& port, bool enable) {
    if (port.link() == nullptr) {
        return {EINVAL, fmt::format("nothing is plugged in at {}", port_name(port))};
    }
    apply(HoldPort{port, enable ? PhysicalState::kLinkUp : PhysicalState::kDisabled}, simulation_);
    return {0, fmt::format("{} is {}: link {} is {}\n", port_name(port),
                           enable ? "enabled" : "disabled", port.link()->name(),
                           to_string(port.link()->state()))};
}

FabricAnswer FabricChanges::set_address(Port& port, const std::string& value) {
    constexpr std::string_view kVlanWord = " vlan ";
    const std::size_t end = std::min(value.find(kVlanWord), value.size());
    in_addr address{};
    if (inet_pton(AF_INET, value.substr(0, end).c_str(), &address) != 1) {
        return {EINVAL, fmt::format("'{}' is no IPv4 address, with or without a VLAN: 10.0.0.1 "
                                    "vlan 100",
                                    value)};
    }
    std::optional<std::uint32_t> vlan = 0;
    if (end < value.size()) {
        vlan = parse_number(value.substr(end + kVlanWord.size()));
        const auto& vlans = port.attributes().vlans;
        if (!vlan || !vlans || !std::ranges::binary_search(*vlans, *vlan)) {
            return {EINVAL,
                    fmt::format("{} has no interface in VLAN {}; it has them in: {}",
                                port_name(port), value.substr(end + kVlanWord.size()),
                                vlans && !vlans->empty()
                                    ? fmt::format("{}", fmt::join(*vlans, ", "))
                                    : "none; a topology makes them: eth-star:4,vlans=[100]")};
        }
    }
    if (!set_ipv4_address(simulation_.network(), port, ntohl(address.s_addr),
                          static_cast<std::uint16_t>(*vlan))) {
        return {EINVAL, fmt::format("{} is another port's, or no host's address", value)};
    }
    return {0, fmt::format("{} has the address {}\n", port_name(port), value)};
}

FabricAnswer FabricChanges::set_lid(Port& port, const std::string& value) {
    const auto lid = parse_number(value);
    if (!lid || *lid > fabric::kLastUnicastLid.value() ||
        !apply(SetLid{port, fabric::Lid(static_cast<std::uint16_t>(*lid))}, simulation_).empty()) {
        return {EINVAL, fmt::format("'{}' is another port's LID, or no unicast LID; those are 1 to "
                                    "{}",
                                    value, fabric::kLastUnicastLid.value())};
    }
    return {0, fmt::format("{} gets the LID {}\n", port_name(port), *lid)};
}

FabricAnswer FabricChanges::set_pkeys(Port& port, const std::string& value) {
    constexpr std::uint32_t kLast = 0xFFFF;
    std::vector<std::uint16_t> table = port.attributes().pkeys;
    const std::size_t most = limits_of(port).pkey_entries;
    std::string_view rest = value;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
        const auto entry = entry_of(word);
        const auto pkey = entry ? parse_number(entry->value) : std::nullopt;
        if (!pkey || *pkey > kLast || entry->index >= most) {
            return {EINVAL,
                    fmt::format("'{}' is not INDEX=P_KEY with an index up to {} and a P_Key "
                                "up to {:#x}",
                                word, most - 1, kLast)};
        }
        table.resize(std::max(table.size(), entry->index + 1), 0);
        table[entry->index] = static_cast<std::uint16_t>(*pkey);
    }
    std::string text = fmt::format("{} gets the P_Keys", port_name(port));
    for (const std::uint16_t pkey : table) {
        text += fmt::format(" {:#06x}", pkey);
    }
    apply(SetPkeys{port, std::move(table)}, simulation_);
    return {0, text + '\n'};
}

FabricAnswer FabricChanges::set_gid(Port& port, const std::string& value) {
    const auto entry = entry_of(value);
    in6_addr address{};
    const std::size_t last =
        std::min<std::size_t>(port.attributes().gids.size(), limits_of(port).gid_entries - 1U);
    if (!entry || inet_pton(AF_INET6, std::string(entry->value).c_str(), &address) != 1) {
        return {EINVAL, fmt::format("'{}' is not INDEX=GID, as in 1=fe80::7", value)};
    }
    if (entry->index > last) {
        return {EINVAL,
                fmt::format("index {} is too high: {} has {}, and the table, of {} entries, "
                            "has no gap; the highest index to set is {}",
                            entry->index, port_name(port),
                            fabric::counted(port.attributes().gids.size(), "GID"),
                            limits_of(port).gid_entries, last)};
    }
    fabric::Gid gid;
    std::copy_n(&address.s6_addr[0], gid.bytes.size(), gid.bytes.begin());
    if (const std::string_view reason = apply(SetGid{port, entry->index, gid}, simulation_);
        !reason.empty()) {
        return {EOPNOTSUPP, std::string(reason)};
    }
    return {0, fmt::format("{} gets the GID {} at {}\n", port_name(port), to_string(gid),
                           entry->index)};
}

const PortLimits& FabricChanges::limits_of(const Port& port) const {
    return simulation_.hca(port.node().id().value()).personality().limits.port;
}

}  // namespace simverbs
