#include "simverbs/server/fabric_requests.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simverbs/server/fabric_report.hpp"
#include "simverbs/server/fabric_subnet.hpp"
#include "simverbs/server/server_events.hpp"
#include "simverbs/server/watch_report.hpp"

namespace simverbs {
namespace {

using fabric::Node;
using fabric::Port;

template <std::size_t N>
std::string text_of(const std::array<char, N>& field) {
    return {field.data(), strnlen(field.data(), N)};
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
        case FabricAction::kStatus:
            return "status";
    }
    return "?";
}

bool changes(const FabricRequest& request) {
    switch (request.action) {
        case FabricAction::kShow:
        case FabricAction::kSmStatus:
        case FabricAction::kWatch:
        case FabricAction::kStatus:
            return false;
        case FabricAction::kCounters:
            return request.resets != 0;
        default:
            return true;
    }
}

}  // namespace

FabricRequests::FabricRequests(Simulation& simulation, RunMarks& marks,
                               std::function<std::string()> name_users,
                               std::function<std::string()> status)
    : simulation_(simulation),
      marks_(marks),
      name_users_(std::move(name_users)),
      status_(std::move(status)),
      lookup_(simulation),
      changes_(simulation) {}

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
        if (has_hung_up(one.socket)) {  // interrupted: nobody learns of the change
            close(one.socket);
        } else {
            reply(one.socket, execute(one.request));
        }
    }
    return !now.empty();
}

void FabricRequests::reply(int socket, const FabricAnswer& answer) {
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

FabricAnswer FabricRequests::execute(const FabricRequest& request) {
    const std::string name = text_of(request.name);
    const std::string value = text_of(request.value);
    switch (request.action) {
        case FabricAction::kShow:
            return show(request, name);
        case FabricAction::kCounters:
            return count(request, name);
        case FabricAction::kSmStatus:
            return {0, describe_subnet(simulation_, request.as_json != 0)};
        case FabricAction::kWatch:
            return {0, watch_report(simulation_, name_users_())};
        case FabricAction::kStatus:
            return {0, status_()};
        case FabricAction::kSmSweep:
            if (simulation_.sweeping_sm() == nullptr) {
                return {EOPNOTSUPP, describe_missing_sweeps(simulation_)};
            }
            trace(simulation_.network().host(0).id(), request);
            return simulation_.sweeping_sm()->resweep()
                       ? FabricAnswer{0, "the subnet manager sweeps\n"}
                       : FabricAnswer{EOPNOTSUPP, "another subnet manager is the master"};
        case FabricAction::kLinkUp:
        case FabricAction::kLinkDown:
        case FabricAction::kLinkRate: {
            const auto link = lookup_.link(name);
            if (!link) {
                return {ENOENT, link.error()};
            }
            trace((*link)->end(0).node().id(), request);
            return changes_.change_link(request.action, **link, value);
        }
        default:
            break;
    }
    if (command_name(request.action) == "?") {
        return {EPROTO, "no such request"};
    }
    const auto port = lookup_.port(name);
    if (!port) {
        return {ENOENT, port.error()};
    }
    trace((*port)->node().id(), request);
    return changes_.change_port(request.action, **port, value);
}

void FabricRequests::trace(fabric::NodeId node, const FabricRequest& request) {
    marks_.set(Mark::kChangedByOperator);
    simulation_.bus().emit(simulation_.loop().now(),
                           FabricCommanded{node, command_name(request.action),
                                           text_of(request.name), text_of(request.value)});
}

FabricAnswer FabricRequests::show(const FabricRequest& request, const std::string& name) {
    FabricPart part;
    if (name.empty()) {
        part = whole_fabric(simulation_.network());
    } else if (const auto link = lookup_.link(name); link) {
        part.links.push_back(*link);
    } else if (name.find('-') != std::string::npos) {  // the name of no node
        return {ENOENT, link.error()};
    } else if (name.find(':') != std::string::npos) {
        const auto port = lookup_.port(name);
        if (!port) {
            return {ENOENT, port.error()};
        }
        part.ports.push_back(*port);
    } else {
        const auto nodes = lookup_.nodes(name);
        if (!nodes) {
            return {ENOENT, nodes.error() + "; a link has the names of both ends, as h0-s0"};
        }
        for (const Node* const node : *nodes) {
            std::ranges::copy(ports_of(*node), std::back_inserter(part.ports));
        }
    }
    return {0, show_fabric(simulation_, part, request.as_json != 0)};
}

FabricAnswer FabricRequests::count(const FabricRequest& request, const std::string& name) {
    const fabric::Network& network = simulation_.network();
    std::vector<const Port*> ports;
    const auto add_ports_of = [&ports](const Node& node) {
        std::ranges::copy_if(ports_of(node), std::back_inserter(ports),
                             [](const Port* port) { return port->link() != nullptr; });
    };
    CounterChoice choice{.with_zeros = request.with_zeros != 0,
                         .of_hardware = request.of_hardware != 0,
                         .as_json = request.as_json != 0};
    if (name.empty()) {
        for (std::size_t i = 0; i < network.node_count(); ++i) {
            add_ports_of(network.node(fabric::NodeId{static_cast<std::uint32_t>(i)}));
        }
    } else if (name.find(':') != std::string::npos) {
        const auto port = lookup_.port(name);
        if (!port) {
            return {ENOENT, port.error()};
        }
        if ((*port)->link() == nullptr) {
            return {EINVAL, fmt::format("nothing is plugged in at {}", name)};
        }
        ports.push_back(*port);
        choice.with_zeros = true;
    } else {
        const auto nodes = lookup_.nodes(name);
        if (!nodes) {
            return {ENOENT, nodes.error()};
        }
        for (const Node* const node : *nodes) {
            add_ports_of(*node);
        }
    }
    FabricAnswer answer{0, show_counters(simulation_, ports, choice)};
    bool any = request.resets == 0;
    for (const Port* const port : ports) {
        any = (request.resets != 0 && reset_counters(simulation_, *port)) || any;
    }
    return any ? answer : FabricAnswer{EOPNOTSUPP, "nobody resets the counters of Ethernet ports"};
}

}  // namespace simverbs
