#include "simverbs/server/fabric_requests.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/core/nearest.hpp"
#include "fabric/net/ethernet_addresses.hpp"
#include "fabric/yaml/quantities.hpp"

#include "simverbs/faults/fabric_change.hpp"
#include "simverbs/server/fabric_report.hpp"
#include "simverbs/server/fabric_subnet.hpp"
#include "simverbs/server/server_events.hpp"
#include "simverbs/server/watch_report.hpp"

namespace simverbs {
namespace {

using fabric::Link;
using fabric::LinkState;
using fabric::Node;
using fabric::NodeKind;
using fabric::PhysicalState;
using fabric::Port;
using fabric::PortNumber;

template <std::size_t N>
std::string text_of(const std::array<char, N>& field) {
    return {field.data(), strnlen(field.data(), N)};
}

// "9", "0x9".
std::optional<std::uint32_t> number_of(std::string_view text) {
    const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
    text.remove_prefix(is_hex ? 2 : 0);
    std::uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    return is_whole ? std::optional(number) : std::nullopt;
}

// "INDEX=VALUE".
struct Entry {
    std::size_t index = 0;
    std::string_view value;
};
std::optional<Entry> entry_of(std::string_view text) {
    const std::size_t equals = text.find('=');
    const auto index = number_of(text.substr(0, equals));
    if (equals == std::string_view::npos || !index) {
        return std::nullopt;
    }
    return Entry{*index, text.substr(equals + 1)};
}

// The first few of many.
std::string list_of(std::span<const std::string_view> names) {
    constexpr std::size_t kMost = 12;
    std::string list;
    for (const std::string_view name : names.first(std::min(names.size(), kMost))) {
        list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    }
    return list + (names.size() > kMost ? ", ..." : "");
}

constexpr std::string_view command_name(FabricAction action) {
    switch (action) {
        case FabricAction::kShow:
            return "show";
        case FabricAction::kCounters:
            return "counters";
        case FabricAction::kLinkUp:
            return "link up";
        case FabricAction::kLinkDown:
            return "link down";
        case FabricAction::kLinkRate:
            return "link rate";
        case FabricAction::kPortEnable:
            return "port enable";
        case FabricAction::kPortDisable:
            return "port disable";
        case FabricAction::kPortLid:
            return "port lid";
        case FabricAction::kPortPkeys:
            return "port pkey";
        case FabricAction::kPortGid:
            return "port gid";
        case FabricAction::kPortAddress:
            return "port ip";
        case FabricAction::kSmStatus:
            return "sm status";
        case FabricAction::kSmSweep:
            return "sm sweep";
        case FabricAction::kSmReregister:
            return "sm reregister";
        case FabricAction::kWatch:
            return "watch";
    }
    return "?";
}

bool changes(const FabricRequest& request) {
    switch (request.action) {
        case FabricAction::kShow:
        case FabricAction::kSmStatus:
        case FabricAction::kWatch:
            return false;
        case FabricAction::kCounters:
            return request.resets != 0;
        default:
            return true;
    }
}

}  // namespace

FabricRequests::FabricRequests(Simulation& simulation, RunMarks& marks)
    : simulation_(simulation), marks_(marks) {}

FabricRequests::~FabricRequests() {
    for (const Waiting& one : waiting_) {
        close(one.socket);
    }
}

void FabricRequests::serve(int socket, const FabricRequest& request, bool changes_wait) {
    if (!changes_wait || !changes(request)) {
        reply(socket, execute(request));
    } else if (waiting_.size() < kMaxWaiting) {
        waiting_.push_back({socket, request});
    } else {
        reply(socket, {EBUSY, fmt::format("{} changes wait already", kMaxWaiting)});
    }
}

bool FabricRequests::run_waiting() {
    const std::vector<Waiting> now = std::exchange(waiting_, {});
    for (const Waiting& one : now) {
        reply(one.socket, execute(one.request));
    }
    return !now.empty();
}

void FabricRequests::reply(int socket, const Answer& answer) {
    const FabricReply reply{static_cast<std::uint32_t>(answer.error)};
    const int text = memfd_create("simverbs fabric", MFD_CLOEXEC);
    const auto length = static_cast<ssize_t>(answer.text.size());
    if (text >= 0 && pwrite(text, answer.text.data(), answer.text.size(), 0) == length) {
        const std::array<int, 1> descriptors{text};
        send_message(socket, std::as_bytes(std::span(&reply, 1)), descriptors, false);
    }
    if (text >= 0) {
        close(text);
    }
    close(socket);
}

FabricRequests::Answer FabricRequests::execute(const FabricRequest& request) {
    const std::string name = text_of(request.name);
    const std::string value = text_of(request.value);
    Answer answer;
    switch (request.action) {
        case FabricAction::kShow:
            return show(request, name);
        case FabricAction::kCounters:
            return count(request, name);
        case FabricAction::kSmStatus:
            return {0, describe_subnet(simulation_)};
        case FabricAction::kWatch:
            return {0, watch_report(simulation_)};
        case FabricAction::kSmSweep:
            if (simulation_.sweeping_sm() == nullptr) {
                return {EOPNOTSUPP,
                        "this world has no subnet manager that sweeps: start it with "
                        "--sm sweep"};
            }
            trace(simulation_.network().host(0).id(), request);
            return simulation_.sweeping_sm()->resweep()
                       ? Answer{0, "the subnet manager sweeps\n"}
                       : Answer{EOPNOTSUPP, "another subnet manager is the master"};
        case FabricAction::kLinkUp:
        case FabricAction::kLinkDown:
        case FabricAction::kLinkRate: {
            Link* const link = simulation_.network().find_link(name);
            if (link == nullptr) {
                return no_link(name);
            }
            trace(link->end(0).node().id(), request);
            return change_link(request.action, *link, value);
        }
        default:
            break;
    }
    if (command_name(request.action) == "?") {
        return {EPROTO, "no such request"};
    }
    Port* const port = find_port(name, answer);
    if (port == nullptr) {
        return answer;
    }
    trace(port->node().id(), request);
    return change_port(request.action, *port, value);
}

void FabricRequests::trace(fabric::NodeId node, const FabricRequest& request) {
    marks_.set(Mark::kChangedByOperator);
    simulation_.bus().emit(simulation_.loop().now(),
                           FabricCommanded{node, command_name(request.action),
                                           text_of(request.name), text_of(request.value)});
}

FabricRequests::Answer FabricRequests::show(const FabricRequest& request, const std::string& name) {
    FabricPart part;
    if (name.empty()) {
        part = whole_fabric(simulation_.network());
    } else if (const Link* const link = simulation_.network().find_link(name); link != nullptr) {
        part.links.push_back(link);
    } else if (name.find('-') != std::string::npos) {  // the name of no node
        return no_link(name);
    } else if (name.find(':') == std::string::npos) {
        const Node* const node = find_node(name);
        if (node == nullptr) {
            return no_node(name);
        }
        part.ports = ports_of(*node);
    } else {
        Answer wrong;
        const Port* const port = find_port(name, wrong);
        if (port == nullptr) {
            return wrong;
        }
        part.ports.push_back(port);
    }
    return {0, show_fabric(simulation_, part, request.as_json != 0)};
}

FabricRequests::Answer FabricRequests::count(const FabricRequest& request,
                                             const std::string& name) {
    const fabric::Network& network = simulation_.network();
    std::vector<const Port*> ports;
    const auto add_ports_of = [&ports](const Node& node) {
        std::ranges::copy_if(ports_of(node), std::back_inserter(ports),
                             [](const Port* port) { return port->link() != nullptr; });
    };
    CounterChoice choice{.of_hardware = request.of_hardware != 0, .as_json = request.as_json != 0};
    if (name.empty()) {
        for (std::size_t i = 0; i < network.node_count(); ++i) {
            add_ports_of(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}));
        }
    } else if (name.find(':') != std::string::npos) {
        Answer wrong;
        const Port* const port = find_port(name, wrong);
        if (port == nullptr) {
            return wrong;
        }
        if (port->link() == nullptr) {
            return {EINVAL, fmt::format("nothing is plugged in at {}", name)};
        }
        ports.push_back(port);
        choice.with_zeros = true;
    } else {
        const Node* const node = find_node(name);
        if (node == nullptr) {
            return no_node(name);
        }
        add_ports_of(*node);
    }
    Answer answer{0, show_counters(simulation_, ports, choice)};
    bool any = request.resets == 0;
    for (const Port* const port : ports) {
        any = (request.resets != 0 && reset_counters(simulation_, *port)) || any;
    }
    return any ? answer : Answer{EOPNOTSUPP, "nobody resets the counters of Ethernet ports"};
}

FabricRequests::Answer FabricRequests::change_link(FabricAction action, Link& link,
                                                   const std::string& value) {
    if (action == FabricAction::kLinkUp) {
        return take_up(link);
    }
    if (action == FabricAction::kLinkDown) {
        return take_down(link, value);
    }
    const auto rate = fabric::yaml::parse_link_rate(value);
    if (!rate.value) {
        return {EINVAL, rate.error};
    }
    apply(SetLinkRate{link, rate.value->width, rate.value->speed}, simulation_);
    return {0, fmt::format("link {} runs at {}\n", link.name(),
                           fabric::yaml::link_rate_text(*rate.value))};
}

FabricRequests::Answer FabricRequests::take_down(Link& link, const std::string& duration) {
    fabric::yaml::Parsed<fabric::SimDuration> pause;
    if (!duration.empty()) {
        pause = fabric::yaml::parse_duration(duration);
        if (!pause.value) {
            return {EINVAL, pause.error};
        }
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
    if (!pause.value) {
        return {0, fmt::format("link {} is DOWN\n", link.name())};
    }
    mending.arm_in(*pause.value);
    return {0, fmt::format("link {} is DOWN for {}\n", link.name(), duration)};
}

FabricRequests::Answer FabricRequests::take_up(Link& link) {
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

void FabricRequests::handle(const fabric::Event& event) {
    apply(SetLinkState{simulation_.network().link(event.argument), LinkState::kUp}, simulation_);
}

FabricRequests::Answer FabricRequests::change_port(FabricAction action, Port& port,
                                                   const std::string& value) {
    const bool is_ethernet = port.attributes().link_layer == fabric::LinkLayer::kEthernet;
    if (action == FabricAction::kPortEnable || action == FabricAction::kPortDisable) {
        return hold(port, action == FabricAction::kPortEnable);
    }
    if (action == FabricAction::kPortAddress) {
        return is_ethernet && port.node().kind() == NodeKind::kHca
                   ? set_address(port, value)
                   : Answer{EOPNOTSUPP, fmt::format("{} has no IP address: a host's Ethernet port "
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

FabricRequests::Answer FabricRequests::manage_port(FabricAction action, Port& port,
                                                   const std::string& value) {
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

FabricRequests::Answer FabricRequests::hold(Port& port, bool enable) {
    if (port.link() == nullptr) {
        return {EINVAL, fmt::format("nothing is plugged in at {}", port_name(port))};
    }
    apply(HoldPort{port, enable ? PhysicalState::kLinkUp : PhysicalState::kDisabled}, simulation_);
    return {0, fmt::format("{} is {}: link {} is {}\n", port_name(port),
                           enable ? "enabled" : "disabled", port.link()->name(),
                           to_string(port.link()->state()))};
}

FabricRequests::Answer FabricRequests::set_address(Port& port, const std::string& value) {
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
        vlan = number_of(value.substr(end + kVlanWord.size()));
        const auto& vlans = port.attributes().vlans;
        if (!vlan || !vlans || !std::ranges::binary_search(*vlans, *vlan)) {
            return {EINVAL, fmt::format("{} has no interface in VLAN {}; it has them in: {}",
                                        port_name(port), value.substr(end + kVlanWord.size()),
                                        vlans && !vlans->empty()
                                            ? fmt::format("{}", fmt::join(*vlans, ", "))
                                            : "none")};
        }
    }
    if (!set_ipv4_address(simulation_.network(), port, ntohl(address.s_addr),
                          static_cast<std::uint16_t>(*vlan))) {
        return {EINVAL, fmt::format("{} is another port's, or no host's address", value)};
    }
    return {0, fmt::format("{} has the address {}\n", port_name(port), value)};
}

FabricRequests::Answer FabricRequests::set_lid(Port& port, const std::string& value) {
    const auto lid = number_of(value);
    if (!lid || *lid > fabric::kLastUnicastLid.value() ||
        !apply(SetLid{port, fabric::Lid(static_cast<std::uint16_t>(*lid))}, simulation_).empty()) {
        return {EINVAL, fmt::format("'{}' is another port's LID, or no unicast LID; those are 1 to "
                                    "{}",
                                    value, fabric::kLastUnicastLid.value())};
    }
    return {0, fmt::format("{} gets the LID {}\n", port_name(port), *lid)};
}

FabricRequests::Answer FabricRequests::set_pkeys(Port& port, const std::string& value) {
    constexpr std::uint32_t kLast = 0xFFFF;
    std::vector<std::uint16_t> table = port.attributes().pkeys;
    const std::size_t most = limits_of(port).pkey_entries;
    std::string_view rest = value;
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
        const auto entry = entry_of(word);
        const auto pkey = entry ? number_of(entry->value) : std::nullopt;
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

FabricRequests::Answer FabricRequests::set_gid(Port& port, const std::string& value) {
    const auto entry = entry_of(value);
    in6_addr address{};
    const std::size_t last =
        std::min<std::size_t>(port.attributes().gids.size(), limits_of(port).gid_entries - 1U);
    if (!entry || entry->index > last ||
        inet_pton(AF_INET6, std::string(entry->value).c_str(), &address) != 1) {
        return {EINVAL, fmt::format("'{}' is not INDEX=GID with an index up to {}", value, last)};
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

Node* FabricRequests::find_node(const std::string& name) const {
    Node* const node = simulation_.network().find_node(name);
    return node != nullptr ? node : simulation_.network().find_host(name);
}

FabricRequests::Answer FabricRequests::no_node(const std::string& name) const {
    const fabric::Network& network = simulation_.network();
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < network.node_count(); ++i) {
        names.push_back(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}).name());
    }
    return {ENOENT, fmt::format("topology '{}' has no node '{}'{} (nodes: {})",
                                simulation_.options().topology, name,
                                fabric::suggestion(name, names), list_of(names))};
}

FabricRequests::Answer FabricRequests::no_link(const std::string& name) const {
    const fabric::Network& network = simulation_.network();
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        names.push_back(network.link(i).name());
    }
    return {ENOENT, fmt::format("topology '{}' has no link '{}'{} (links: {})",
                                simulation_.options().topology, name,
                                fabric::suggestion(name, names), list_of(names))};
}

Port* FabricRequests::find_port(const std::string& name, Answer& wrong) const {
    const std::size_t colon = name.rfind(':');
    const std::string node_name = name.substr(0, colon);
    Node* const node = find_node(node_name);
    if (node == nullptr) {
        wrong = no_node(node_name);
        return nullptr;
    }
    const auto number = colon == std::string::npos
                            ? std::nullopt
                            : number_of(std::string_view(name).substr(colon + 1));
    const std::uint16_t first = node->kind() == NodeKind::kSwitch ? 0 : 1;
    if (!number || *number < first || *number > node->port_count()) {
        wrong = {ENOENT, fmt::format("'{}' is no port: {} has {}:{} to {}:{}", name, node_name,
                                     node_name, first, node_name, node->port_count())};
        return nullptr;
    }
    return &node->port(PortNumber{static_cast<std::uint16_t>(*number)});
}

const PortLimits& FabricRequests::limits_of(const Port& port) const {
    return simulation_.hca(port.node().id().value()).personality().limits.port;
}

}  // namespace simverbs
