#include "fabric/sm/startup_sm.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/sm/network_graph.hpp"
#include "fabric/sm/routing/choice.hpp"
#include "fabric/sm/sm_events.hpp"

namespace fabric {

namespace {
bool is_managed(const Link& link) {
    return link.end(0).attributes().link_layer == LinkLayer::kInfiniband;
}
}  // namespace

StartupSm::StartupSm(Network& network, RoutingEngine routing, SimDuration reaction_delay)
    : network_(network), routing_(routing), reaction_delay_(reaction_delay) {
    SIMVERBS_ASSERT(network.host_count() != 0, "a subnet manager needs a host to live on");
    for (std::size_t i = 0; i < network.link_count(); ++i) {
        const EventKey key(EventClass::kLinkState, network.host(0).id(), PortNumber{0},
                           static_cast<std::uint32_t>(i));
        reactions_.emplace_back(network.loop(), key, *this, i);
    }
    network_.set_link_observer(this);
}

StartupSm::~StartupSm() {
    network_.set_link_observer(nullptr);
}

void StartupSm::bring_up() {
    SIMVERBS_ASSERT(!is_up_, "a network is brought up twice");
    is_up_ = true;
    assign_lids();
    build_routes();
    for (std::size_t i = 0; i < network_.link_count(); ++i) {
        activate(network_.link(i));
    }
}

void StartupSm::assign_lids() {
    std::uint32_t next = kFirstUnicastLid.value();
    const auto assign = [this, &next](Port& port) {
        if (port.attributes().link_layer == LinkLayer::kEthernet) {
            return;
        }
        SIMVERBS_ASSERT(next <= kLastUnicastLid.value(), "there are more ports than LIDs");
        port.mutable_attributes().lid = Lid{static_cast<std::uint16_t>(next++)};
        if (sm_lid_ == kNoLid) {
            sm_lid_ = port.attributes().lid;
        }
    };
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        EndNode& host = network_.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            assign(host.port(PortNumber{number}));
        }
    }
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        assign(network_.switch_at(i).port(PortNumber{0}));
    }
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        Port& port = network_.switch_at(i).port(PortNumber{0});
        if (port.attributes().lid != kNoLid) {
            port.mutable_attributes().sm_lid = sm_lid_;
        }
    }
}

// Only what differs from the power-on defaults is news to a consumer: the default GID prefix and
// P_Key are the ones this subnet manager uses.
void StartupSm::configure_port(Port& port) {
    PortAttributes& attributes = port.mutable_attributes();
    attributes.active_mtu = std::min(attributes.max_mtu, port.peer()->attributes().max_mtu);
    if (port.node().kind() != NodeKind::kHca) {
        return;
    }
    if (attributes.sm_lid == kNoLid) {
        attributes.sm_lid = sm_lid_;
        port.raise(PortEvent::kLidChange);
        port.raise(PortEvent::kSmChange);
    }
    port.raise(PortEvent::kClientReregister);
}

void StartupSm::build_routes() {
    static_assert(routing::Tables::kNoRoute == Switch::kNoRoute);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        names.push_back(network_.switch_at(i).name());
    }
    const routing::Routes routes = routing::make_routes(graph_of(network_), names, routing_);
    engine_ = routes.engine;
    refused_ = routes.refused;
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        const auto row = routes.tables.row(static_cast<routing::SwitchIndex>(i));
        network_.switch_at(i).set_forwarding_table({row.begin(), row.end()});
    }
    if (!routes.refused.empty() || !routes.report.credit_loop.empty()) {
        const std::string loop = describe(routes.report.credit_loop, names);
        network_.bus().emit(
            network_.loop().now(),
            RoutesComputed{network_.host(0).id(), routes.engine, routes.refused, loop});
    }
}

// Both ends are ARMED before either is ACTIVE, so that no frame meets a port that is not ready.
void StartupSm::activate(Link& link) {
    if (link.state() != LinkState::kUp || !is_managed(link)) {
        return;
    }
    for (const std::size_t which : {0U, 1U}) {
        configure_port(link.end(which));
    }
    for (const PortTrigger trigger : {PortTrigger::kSetArmed, PortTrigger::kSetActive}) {
        link.end(0).apply(trigger);
        link.end(1).apply(trigger);
    }
}

bool StartupSm::is_taken(Lid lid) const {
    for (std::size_t i = 0; i < network_.host_count(); ++i) {
        const EndNode& host = network_.host(i);
        for (std::uint16_t number = 1; number <= host.port_count(); ++number) {
            if (host.port(PortNumber{number}).attributes().lid == lid) {
                return true;
            }
        }
    }
    for (std::size_t i = 0; i < network_.switch_count(); ++i) {
        if (network_.switch_at(i).port(PortNumber{0}).attributes().lid == lid) {
            return true;
        }
    }
    return false;
}

bool StartupSm::set_lid(Port& port, Lid lid) {
    if (!is_unicast(lid) || (port.attributes().lid != lid && is_taken(lid))) {
        return false;
    }
    port.mutable_attributes().lid = lid;
    build_routes();
    port.raise(PortEvent::kLidChange);
    return true;
}

void StartupSm::set_pkeys(Port& port, std::vector<std::uint16_t> pkeys) {
    std::vector<std::uint16_t>& table = port.mutable_attributes().pkeys;
    pkeys.resize(std::max(pkeys.size(), table.size()), 0);
    table = std::move(pkeys);
    port.raise(PortEvent::kPkeyChange);
}

bool StartupSm::set_gid(Port& port, std::size_t index, const Gid& gid) {
    std::vector<GidEntry>& table = port.mutable_attributes().gids;
    SIMVERBS_ASSERT(index <= table.size(), "GID {} of a table of {}", index, table.size());
    table.resize(std::max(table.size(), index + 1));
    table[index] = {gid, GidType::kInfiniband};
    port.raise(PortEvent::kGidChange);
    return true;
}

void StartupSm::set_sm_lid(Port& port, Lid lid) {
    port.mutable_attributes().sm_lid = lid;
    port.raise(PortEvent::kSmChange);
}

void StartupSm::ask_to_reregister(Port& port) {
    port.raise(PortEvent::kClientReregister);
}

void StartupSm::link_changed(Link& link) {
    if (is_up_ && is_managed(link)) {
        reactions_[link.index()].arm_in(reaction_delay_);
    }
}

void StartupSm::handle(const Event& event) {
    build_routes();
    activate(network_.link(event.argument));
    if (administration_ != nullptr) {
        administration_->network_changed();
    }
}

}  // namespace fabric
