#include "fabric/mad/subnet_agent.hpp"

#include <algorithm>
#include <utility>

#include "fabric/core/assert.hpp"
#include "fabric/mad/mad_events.hpp"

namespace fabric {

namespace {

using mad::Attribute;
using mad::Datagram;
using mad::Method;
using mad::Status;

constexpr std::uint16_t kNodeDescriptionChange = 1U << 0;

Datagram make_trap() {
    Datagram trap;
    trap.set(mad::header::kBaseVersion, 1);
    trap.set(mad::header::kClass, static_cast<std::uint64_t>(mad::Class::kSubnLid));
    trap.set(mad::header::kClassVersion, 1);
    trap.set(mad::header::kMethod, static_cast<std::uint64_t>(Method::kTrap));
    trap.set(mad::header::kAttributeId, static_cast<std::uint64_t>(Attribute::kNotice));
    return trap;
}

}  // namespace

struct SubnetAgent::Row {
    Attribute attribute;
    bool of_switches_only;
    Status (SubnetAgent::*get)(const Request&, mad::Bytes);
    Status (SubnetAgent::*set)(const Request&, mad::ConstBytes);  // nullptr: it cannot be set
};

SubnetAgent::SubnetAgent(Network& network, Node& node, const NodeIdentity& identity,
                         DatagramCarrier& carrier)
    : network_(network),
      node_(node),
      identity_(identity),
      carrier_(carrier),
      timer_(network.loop(),
             EventKey(EventClass::kTimer, node.id(), PortNumber{kSubnetAgentKey}, 0), *this),
      description_(node.description()),
      ports_(node.port_count() + 1U) {
    for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
        const PortAttributes& attributes = node.port(PortNumber{number}).attributes();
        ports_[number].widest = attributes.width;
        ports_[number].fastest = attributes.speed;
    }
}

SubnetAgent::~SubnetAgent() = default;

SubnetAgent::Verdict SubnetAgent::process(const ArrivedDatagram& arrived, Datagram& response) {
    const Datagram& request = arrived.datagram;
    const Method method = request.method();
    const auto attribute = static_cast<Attribute>(request.attribute());
    const bool is_repress = method == Method::kTrapRepress;
    if ((method != Method::kGet && method != Method::kSet && !is_repress) ||
        attribute == Attribute::kSmInfo) {
        return Verdict::kNotMine;
    }
    const PortNumber own = is_switch() ? PortNumber{0} : arrived.port;
    if (request.get(mad::header::kBaseVersion) != 1 ||
        request.get(mad::header::kClassVersion) != 1) {
        response.set(mad::header::kStatus, static_cast<std::uint64_t>(Status::kBadVersion));
        return Verdict::kAnswer;
    }
    if (!key_matches(arrived, own)) {
        return Verdict::kSilence;
    }
    if (is_repress) {
        repress(request);
        return Verdict::kSilence;
    }
    const Status status = execute({arrived.port, own, request.modifier()}, response);
    response.set(mad::header::kStatus, static_cast<std::uint64_t>(status));
    return Verdict::kAnswer;
}

// IBA 14.2.4: a Set must have the key; a Get by the protection bits, and without the key it reads
// the key as 0.
bool SubnetAgent::key_matches(const ArrivedDatagram& arrived, PortNumber own) {
    const Datagram& request = arrived.datagram;
    PortManagement& port = at(own);
    const bool is_get = request.method() == Method::kGet;
    if (port.m_key == 0 || port.m_key == request.get(mad::smp::kMkey) ||
        (is_get && port.m_key_protection < 2)) {
        return true;
    }
    port.m_key_violations += port.m_key_violations == 0xFFFF ? 0 : 1;
    Datagram trap = make_trap();
    const mad::Bytes notice = trap.smp_data();
    mad::set(notice, mad::notice::kBadMkeyLid, arrived.from.lid.value());
    mad::set(notice, mad::notice::kBadMkeyMethod, request.get(mad::header::kMethod));
    mad::set(notice, mad::notice::kBadMkeyAttribute, request.attribute());
    mad::set(notice, mad::notice::kBadMkeyModifier, request.modifier());
    mad::set(notice, mad::notice::kBadMkeyKey, request.get(mad::smp::kMkey));
    if (request.is_directed()) {
        mad::set(notice, mad::notice::kBadMkeyDrSlid, request.get(mad::smp::kDrSlid));
        mad::set(notice, mad::notice::kBadMkeyIsDirected, 1);
        mad::set(notice, mad::notice::kBadMkeyHopCount, request.get(mad::smp::kHopCount));
    }
    send_trap(TrapNumber::kBadMkey, mad::notice::Type::kSecurity, own, trap);
    return false;
}

Status SubnetAgent::execute(const Request& request, Datagram& response) {
    // clang-format off
    static constexpr auto kRows = std::to_array<Row>({
        {Attribute::kNodeDescription, false, &SubnetAgent::get_node_description, nullptr},
        {Attribute::kNodeInfo, false, &SubnetAgent::get_node_info, nullptr},
        {Attribute::kSwitchInfo, true, &SubnetAgent::get_switch_info, &SubnetAgent::set_switch_info},
        {Attribute::kGuidInfo, false, &SubnetAgent::get_guid_info, &SubnetAgent::set_guid_info},
        {Attribute::kPortInfo, false, &SubnetAgent::get_port_info, &SubnetAgent::set_port_info},
        {Attribute::kPkeyTable, false, &SubnetAgent::get_pkeys, &SubnetAgent::set_pkeys},
        {Attribute::kSlToVlTable, false, &SubnetAgent::get_sl_to_vl, &SubnetAgent::set_sl_to_vl},
        {Attribute::kVlArbitration, false, &SubnetAgent::get_vl_arbitration, &SubnetAgent::set_vl_arbitration},
        {Attribute::kLinearForwardingTable, true, &SubnetAgent::get_linear_table, &SubnetAgent::set_linear_table},
        {Attribute::kMulticastForwardingTable, true, &SubnetAgent::get_multicast_table, &SubnetAgent::set_multicast_table},
        {Attribute::kVendorDiag, false, &SubnetAgent::get_vendor_diag, nullptr},
    });
    // clang-format on
    const auto attribute = static_cast<Attribute>(response.attribute());
    const auto* const row = std::find_if(kRows.begin(), kRows.end(), [attribute](const Row& one) {
        return one.attribute == attribute;
    });
    const bool sets = response.method() == Method::kSet;
    if (row == kRows.end() || (row->of_switches_only && !is_switch()) ||
        (sets && row->set == nullptr)) {
        return Status::kBadMethodOrAttribute;
    }
    if (sets) {
        const Status status = (this->*row->set)(request, response.smp_data());
        if (status != Status::kOk) {
            return status;
        }
    }
    std::ranges::fill(response.smp_data(), std::uint8_t{0});
    const Status status = (this->*row->get)(request, response.smp_data());
    if (status == Status::kOk && attribute == Attribute::kPortInfo && !sets &&
        response.get(mad::smp::kMkey) != at(request.own).m_key &&
        at(request.own).m_key_protection != 0) {
        mad::set(response.smp_data(), mad::port_info::kMkey, 0);
    }
    return status;
}

std::optional<PortNumber> SubnetAgent::named_port(const Request& request,
                                                  std::uint32_t number) const {
    if (!is_switch() && number == 0) {
        return request.arrived_by;
    }
    if (number > node_.port_count()) {
        return std::nullopt;
    }
    return PortNumber{static_cast<std::uint16_t>(number)};
}

bool SubnetAgent::admits(PortNumber port, std::uint32_t qkey, bool knows_pkey) {
    PortManagement& own = at(port);
    if (!knows_pkey) {
        own.p_key_violations += own.p_key_violations == 0xFFFF ? 0 : 1;
        return false;
    }
    if (qkey != kWellKnownQkey) {
        own.q_key_violations += own.q_key_violations == 0xFFFF ? 0 : 1;
        return false;
    }
    return true;
}

std::uint32_t SubnetAgent::capabilities(PortNumber port) const {
    return identity_.capabilities | (ports_.at(port.value()).is_sm ? mad::port_info::kIsSm : 0U);
}

void SubnetAgent::link_changed() {
    if (!is_switch()) {
        return;
    }
    switch_.port_state_changed = true;
    Datagram trap = make_trap();
    const Lid lid = node_.port(PortNumber{0}).attributes().lid;
    mad::set(trap.smp_data(), mad::notice::kLinkStateLid, lid.value());
    send_trap(TrapNumber::kLinkState, mad::notice::Type::kUrgent, PortNumber{0}, trap);
}

void SubnetAgent::set_is_sm(PortNumber port, bool is_sm) {
    if (std::exchange(at(port).is_sm, is_sm) != is_sm) {
        local_change(port, 0);
    }
}

void SubnetAgent::set_description(std::string description) {
    description.resize(std::min(description.size(), mad::kNodeDescriptionBytes));
    if (description_ == description) {
        return;
    }
    description_ = std::move(description);
    for (std::uint16_t number = is_switch() ? 0 : 1; number < ports_.size(); ++number) {
        local_change(PortNumber{number}, kNodeDescriptionChange);
        if (is_switch()) {
            return;
        }
    }
}

void SubnetAgent::local_change(PortNumber port, std::uint16_t bits) {
    Datagram trap = make_trap();
    const mad::Bytes notice = trap.smp_data();
    const Lid lid = node_.port(port).attributes().lid;
    mad::set(notice, mad::notice::kLocalChangeLid, lid.value());
    mad::set(notice, mad::notice::kLocalChangeFlags, bits == 0 ? 0 : 1);
    mad::set(notice, mad::notice::kLocalChangeCapabilities, capabilities(port));
    mad::set(notice, mad::notice::kLocalChangeBits, bits);
    send_trap(TrapNumber::kLocalChange, mad::notice::Type::kInformational, port, trap);
}

// Only the latest trap of a kind and port waits to be repressed.
void SubnetAgent::send_trap(TrapNumber number, mad::notice::Type type, PortNumber port,
                            Datagram datagram) {
    const PortAttributes& own = node_.port(port).attributes();
    if (own.sm_lid == kNoLid || own.lid == kNoLid) {
        return;
    }
    const mad::Bytes notice = datagram.smp_data();
    const auto producer = is_switch() ? mad::NodeType::kSwitch : mad::NodeType::kChannelAdapter;
    datagram.set(mad::header::kTransactionId, ++last_trap_);
    datagram.set(mad::smp::kMkey, at(port).m_key);
    mad::set(notice, mad::notice::kIsGeneric, 1);
    mad::set(notice, mad::notice::kType, static_cast<std::uint64_t>(type));
    mad::set(notice, mad::notice::kProducerType, static_cast<std::uint64_t>(producer));
    mad::set(notice, mad::notice::kTrapNumber, static_cast<std::uint64_t>(number));
    mad::set(notice, mad::notice::kIssuerLid, own.lid.value());
    std::erase_if(traps_, [&](const Trap& trap) {
        return trap.port == port && mad::get(trap.datagram.smp_data(), mad::notice::kTrapNumber) ==
                                        static_cast<std::uint64_t>(number);
    });
    traps_.push_back({datagram, port, network_.loop().now() + kTrapDelay, 0});
    arm();
}

void SubnetAgent::repress(const Datagram& repress) {
    std::erase_if(traps_, [&repress](const Trap& trap) {
        return trap.datagram.get(mad::header::kTransactionId) ==
               repress.get(mad::header::kTransactionId);
    });
    arm();
}

void SubnetAgent::arm() {
    SimTime first = SimTime::max();
    for (const Trap& trap : traps_) {
        first = std::min(first, trap.due);
    }
    for (const PhysicalChange& change : changes_) {
        first = std::min(first, change.due);
    }
    if (first == SimTime::max()) {
        timer_.cancel();
    } else if (!timer_.armed() || timer_.deadline() != first) {
        timer_.arm(first);
    }
}

void SubnetAgent::handle(const Event& /*event*/) {
    const SimTime now = network_.loop().now();
    std::vector<PhysicalChange> due;
    std::erase_if(changes_, [&due, now](const PhysicalChange& change) {
        if (change.due == now) {
            due.push_back(change);
        }
        return change.due == now;
    });
    for (Trap& trap : traps_) {
        if (trap.due != now) {
            continue;
        }
        constexpr SimDuration kUnit{4'096'000};
        const Lid sm_lid = node_.port(trap.port).attributes().sm_lid;
        carrier_.carry(node_.port(trap.port), trap.datagram, kSubnetManagementQp,
                       {.lid = sm_lid, .sl = node_.port(trap.port).attributes().sm_sl});
        ++trap.sent;
        const mad::ConstBytes notice = std::as_const(trap.datagram).smp_data();
        network_.bus().emit(
            now, TrapSent{node_.id(), trap.port,
                          static_cast<std::uint16_t>(mad::get(notice, mad::notice::kTrapNumber)),
                          trap.sent});
        trap.due = now + kUnit * (std::int64_t{1} << at(trap.port).subnet_timeout);
    }
    std::erase_if(traps_, [](const Trap& trap) { return trap.sent == kTrapRepeats; });
    for (const PhysicalChange& change : due) {
        apply(change);
    }
    arm();
}

}  // namespace fabric
