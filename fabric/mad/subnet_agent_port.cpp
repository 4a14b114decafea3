// The attributes of a port: PortInfo, GUIDs, P_Keys. What a Set changes is raised as an event.
#include <algorithm>

#include "fabric/core/assert.hpp"
#include "fabric/mad/link_bits.hpp"
#include "fabric/mad/subnet_agent.hpp"

namespace fabric {

using mad::Status;
namespace info = mad::port_info;

namespace {

// The rest of PortInfo's modifier is not the port's: bit 31 says that the subnet manager knows
// extended speeds (IBA 14.2.5.6).
constexpr std::uint32_t port_of(std::uint32_t modifier) {
    return modifier & 0xFF;
}

// Returns what the port supports: what it had at the start of the world, or more once its link was
// given a higher rate.
LinkSpeed fastest_of(const PortManagement& managed, const Port& port) {
    return std::max(managed.fastest, port.attributes().speed);
}
LinkWidth widest_of(const PortManagement& managed, const Port& port) {
    const LinkWidth now = port.attributes().width;
    return properties(now).lanes > properties(managed.widest).lanes ? now : managed.widest;
}

constexpr std::uint8_t kAllWidths = 255;
constexpr std::uint8_t kAllSpeeds = 15;
constexpr std::uint8_t kAllExtendedSpeeds = 31;
constexpr std::uint8_t kNoExtendedSpeed = 30;
constexpr std::uint8_t kNoneEnabled = 16;  // a bit of no speed: 0 would be all

// VLCap and OperationalVLs: VL0, to VL1, to VL3, to VL7, to VL14 (IBA 14.2.5.6).
constexpr auto kLanesOfCode = std::to_array<std::uint8_t>({0, 1, 2, 4, 8, 15});
std::uint8_t code_of_lanes(std::uint8_t lanes) {
    std::size_t code = 1;
    for (std::size_t i = 1; i < kLanesOfCode.size(); ++i) {
        code = kLanesOfCode[i] <= lanes ? i : code;
    }
    return static_cast<std::uint8_t>(code);
}

constexpr std::uint8_t kEnforcesIn = 8;  // of PartitionEnforcement
constexpr std::uint8_t kEnforcesOut = 4;
constexpr std::uint8_t kLifetimeBits = 0x1F;  // of VLStallCount and HOQLife

// How many entries of a table are to be kept so that `index` is one.
template <class T>
void grow_to(std::vector<T>& table, std::size_t index) {
    table.resize(std::max(table.size(), index + 1));
}

}  // namespace

Status SubnetAgent::get_port_info(const Request& request, mad::Bytes data) {
    const auto named = named_port(request, port_of(request.modifier));
    if (!named) {
        return Status::kBadValue;
    }
    const Port& port = node_.port(*named);
    mad::set(data, info::kLocalPort, request.arrived_by.value());
    if (!is_switch() || *named == PortNumber{0}) {
        get_addresses(port, data);
    }
    get_link(port, data);
    get_lanes(*named, data);
    return Status::kOk;
}

// Fills in the addresses, which a switch has at its port 0 alone.
void SubnetAgent::get_addresses(const Port& port, mad::Bytes data) {
    const PortAttributes& own = port.attributes();
    const PortManagement& managed = at(port.number());
    mad::set(data, info::kMkey, managed.m_key);
    mad::set(data, info::kGidPrefix, own.gids.front().gid.subnet_prefix());
    mad::set(data, info::kLid, own.lid.value());
    mad::set(data, info::kSmLid, own.sm_lid.value());
    mad::set(data, info::kCapabilityMask, capabilities(port.number()));
    mad::set(data, info::kMkeyLease, managed.m_key_lease);
    mad::set(data, info::kMkeyProtection, managed.m_key_protection);
    mad::set(data, info::kLmc, own.lmc);
    mad::set(data, info::kSmSl, own.sm_sl);
    mad::set(data, info::kInitType, managed.init_type);
    mad::set(data, info::kMkeyViolations, managed.m_key_violations);
    mad::set(data, info::kPkeyViolations, managed.p_key_violations);
    mad::set(data, info::kQkeyViolations, managed.q_key_violations);
    mad::set(data, info::kGuidCap, identity_.gid_entries);
    mad::set(data, info::kSubnetTimeout, managed.subnet_timeout);
    mad::set(data, info::kResponseTime, 8);  // 1 ms
}

void SubnetAgent::get_link(const Port& port, mad::Bytes data) {
    const PortAttributes& own = port.attributes();
    const PortManagement& managed = at(port.number());
    const LinkWidth widest = widest_of(managed, port);
    const LinkSpeed fastest = fastest_of(managed, port);
    const std::uint8_t widths = widths_up_to(widest);
    const std::uint8_t speeds = base_up_to(fastest);
    const std::uint8_t extended = extended_up_to(fastest);
    const auto or_all = [](std::uint8_t enabled, std::uint8_t all) {
        return enabled == 0 ? all : enabled;
    };
    mad::set(data, info::kWidthSupported, widths);
    mad::set(data, info::kWidthEnabled, or_all(own.width_enabled, widths));
    mad::set(data, info::kWidthActive, static_cast<std::uint64_t>(own.width));
    mad::set(data, info::kSpeedSupported, speeds);
    mad::set(data, info::kSpeedEnabled, or_all(own.speed_enabled, speeds));
    mad::set(data, info::kSpeedActive, bits_of(own.speed).base);
    mad::set(data, info::kExtendedSpeedSupported, extended);
    mad::set(data, info::kExtendedSpeedEnabled,
             own.extended_speed_enabled == kNoneEnabled
                 ? kNoExtendedSpeed
                 : or_all(own.extended_speed_enabled, extended));
    mad::set(data, info::kExtendedSpeedActive,
             port.state() == PortState::kDown ? 0 : bits_of(own.speed).extended);
    mad::set(data, info::kCapabilityMask2,
             (extended >= 4 ? info::kIsHdrSupported : 0U) |
                 (extended >= 8 ? info::kIsNdrSupported : 0U) |
                 (widest == LinkWidth::k2x ? info::kIsWidth2xSupported : 0U));
    mad::set(data, info::kState, static_cast<std::uint64_t>(port.state()));
    mad::set(data, info::kPhysicalState, static_cast<std::uint64_t>(port.physical_state()));
    mad::set(data, info::kDownDefault, static_cast<std::uint64_t>(PhysicalState::kPolling));
    mad::set(data, info::kNeighborMtu, static_cast<std::uint64_t>(own.active_mtu));
    mad::set(data, info::kMtuCap, static_cast<std::uint64_t>(own.max_mtu));
    mad::set(data, info::kErrorThresholds, managed.error_thresholds);
}

void SubnetAgent::get_lanes(PortNumber port, mad::Bytes data) {
    const PortManagement& managed = at(port);
    const PortAttributes& own = node_.port(port).attributes();
    mad::set(data, info::kVlCap, code_of_lanes(own.vl_cap));
    mad::set(data, info::kOperationalVls, code_of_lanes(own.operational_vls));
    mad::set(data, info::kVlHighLimit, managed.vl_high_limit);
    mad::set(data, info::kVlArbitrationHighCap, kVlArbitrationEntries);
    mad::set(data, info::kVlArbitrationLowCap, kVlArbitrationEntries);
    mad::set(data, info::kStallCountAndLifetime, managed.stall_and_lifetime);
    mad::set(data, info::kPartitionEnforcement, managed.partition_enforcement);
}

// All or nothing: what cannot be done leaves the port as it was.
Status SubnetAgent::check_port_info(const Port& port, mad::ConstBytes data) const {
    const auto read = [data](mad::Field field) { return mad::get(data, field); };
    const PortAttributes& own = port.attributes();
    const bool has_addresses = !is_switch() || port.number() == PortNumber{0};
    const Lid lid(static_cast<std::uint16_t>(read(info::kLid)));
    const Lid sm_lid(static_cast<std::uint16_t>(read(info::kSmLid)));
    const std::uint64_t mtu = read(info::kNeighborMtu);
    const bool bad_address = has_addresses && ((lid != kNoLid && !is_unicast(lid)) ||
                                               (sm_lid != kNoLid && !is_unicast(sm_lid)));
    if (bad_address || mtu > static_cast<std::uint64_t>(own.max_mtu) ||
        read(info::kOperationalVls) > code_of_lanes(own.vl_cap)) {
        return Status::kBadValue;
    }
    switch (read(info::kState)) {
        case 0:
        case static_cast<std::uint64_t>(PortState::kDown):
            break;
        case static_cast<std::uint64_t>(PortState::kArmed):
            if (port.state() != PortState::kInit && port.state() != PortState::kArmed &&
                port.number() != PortNumber{0}) {
                return Status::kBadValue;
            }
            break;
        case static_cast<std::uint64_t>(PortState::kActive):
            if (port.state() != PortState::kArmed && port.state() != PortState::kActive) {
                return Status::kBadValue;
            }
            break;
        default:
            return Status::kBadValue;
    }
    return read(info::kPhysicalState) <= static_cast<std::uint64_t>(PhysicalState::kDisabled)
               ? Status::kOk
               : Status::kBadValue;
}

Status SubnetAgent::set_port_info(const Request& request, mad::ConstBytes data) {
    const auto named = named_port(request, port_of(request.modifier));
    if (!named) {
        return Status::kBadValue;
    }
    Port& port = node_.port(*named);
    if (const Status status = check_port_info(port, data); status != Status::kOk) {
        return status;
    }
    if (!is_switch() || *named == PortNumber{0}) {
        set_addresses(port, data);
    }
    set_lanes(*named, data);
    if (*named != PortNumber{0}) {
        set_link(port, data);
        set_state(port, data);
    }
    return Status::kOk;
}

void SubnetAgent::set_addresses(Port& port, mad::ConstBytes data) {
    const auto read = [data](mad::Field field) { return mad::get(data, field); };
    PortAttributes& own = port.mutable_attributes();
    PortManagement& managed = at(port.number());
    managed.m_key = read(info::kMkey);
    managed.m_key_protection = static_cast<std::uint8_t>(read(info::kMkeyProtection));
    managed.m_key_lease = static_cast<std::uint16_t>(read(info::kMkeyLease));
    managed.init_type = static_cast<std::uint8_t>(read(info::kInitType));
    managed.subnet_timeout = static_cast<std::uint8_t>(read(info::kSubnetTimeout));
    // Violations are cleared by writing 0 (IBA 14.2.5.6).
    const auto clear = [&read](std::uint16_t& count, mad::Field field) {
        count = read(field) == 0 ? 0 : count;
    };
    clear(managed.m_key_violations, info::kMkeyViolations);
    clear(managed.p_key_violations, info::kPkeyViolations);
    clear(managed.q_key_violations, info::kQkeyViolations);

    const Lid lid(static_cast<std::uint16_t>(read(info::kLid)));
    const auto lmc = static_cast<std::uint8_t>(read(info::kLmc));
    const Lid sm_lid(static_cast<std::uint16_t>(read(info::kSmLid)));
    const auto sm_sl = static_cast<std::uint8_t>(read(info::kSmSl));
    const std::uint64_t prefix = read(info::kGidPrefix);
    const bool lid_changed = own.lid != lid || own.lmc != lmc;
    const bool sm_changed = own.sm_lid != sm_lid || own.sm_sl != sm_sl;
    const bool prefix_changed = own.gids.front().gid.subnet_prefix() != prefix;
    own.lid = lid;
    own.lmc = lmc;
    own.sm_lid = sm_lid;
    own.sm_sl = sm_sl;
    if (prefix_changed) {
        for (GidEntry& entry : own.gids) {
            entry.gid = make_gid(prefix, Guid(entry.gid.interface_id()));
        }
    }
    if (is_switch()) {
        return;
    }
    if (lid_changed) {
        port.raise(PortEvent::kLidChange);
    }
    if (sm_changed) {
        port.raise(PortEvent::kSmChange);
    }
    if (prefix_changed) {
        port.raise(PortEvent::kGidChange);
    }
    if (read(info::kClientReregister) != 0) {
        port.raise(PortEvent::kClientReregister);
    }
}

void SubnetAgent::set_lanes(PortNumber port, mad::ConstBytes data) {
    const auto read = [data](mad::Field field) {
        return static_cast<std::uint8_t>(mad::get(data, field));
    };
    PortManagement& managed = at(port);
    PortAttributes& own = node_.port(port).mutable_attributes();
    if (const std::uint8_t vls = read(info::kOperationalVls); vls != 0) {
        own.operational_vls = kLanesOfCode[vls];
    }
    managed.vl_high_limit = read(info::kVlHighLimit);
    managed.stall_and_lifetime = read(info::kStallCountAndLifetime);
    managed.partition_enforcement = read(info::kPartitionEnforcement);
    managed.error_thresholds = read(info::kErrorThresholds);
    own.vl_arbitration.high_limit = managed.vl_high_limit;
    if (is_switch()) {
        own.enforces_partitions_in = (managed.partition_enforcement & kEnforcesIn) != 0;
        own.enforces_partitions_out = (managed.partition_enforcement & kEnforcesOut) != 0;
        own.head_of_queue_life =
            static_cast<std::uint8_t>(managed.stall_and_lifetime & kLifetimeBits);
    }
}

// Widths and speeds are taken at the next training.
void SubnetAgent::set_link(Port& port, mad::ConstBytes data) {
    const auto read = [data](mad::Field field) {
        return static_cast<std::uint8_t>(mad::get(data, field));
    };
    PortAttributes& own = port.mutable_attributes();
    if (const std::uint8_t mtu = read(info::kNeighborMtu); mtu != 0) {
        own.active_mtu = static_cast<Mtu>(mtu);
    }
    const auto enable = [](std::uint8_t& enabled, std::uint8_t asked, std::uint8_t all) {
        if (asked != 0) {
            enabled = asked == all ? 0 : asked;  // 0: all that is supported
        }
    };
    enable(own.width_enabled, read(info::kWidthEnabled), kAllWidths);
    enable(own.speed_enabled, read(info::kSpeedEnabled), kAllSpeeds);
    const std::uint8_t extended = read(info::kExtendedSpeedEnabled);
    enable(own.extended_speed_enabled, extended == kNoExtendedSpeed ? kNoneEnabled : extended,
           kAllExtendedSpeeds);
}

void SubnetAgent::set_state(Port& port, mad::ConstBytes data) {
    if (port.link() == nullptr) {
        return;
    }
    switch (static_cast<PhysicalState>(mad::get(data, info::kPhysicalState))) {
        case PhysicalState::kDisabled:
            schedule(port.number(), PhysicalStep::kDisable, kPhysicalDelay);
            return;
        case PhysicalState::kPolling:
            schedule(port.number(), PhysicalStep::kRetrain, kPhysicalDelay);
            return;
        default:
            break;
    }
    switch (static_cast<PortState>(mad::get(data, info::kState))) {
        case PortState::kDown:
            schedule(port.number(), PhysicalStep::kRetrain, kPhysicalDelay);
            return;
        case PortState::kArmed:
            port.apply(PortTrigger::kSetArmed);
            return;
        case PortState::kActive:
            port.apply(PortTrigger::kSetActive);
            return;
        default:
            return;
    }
}

void SubnetAgent::schedule(PortNumber port, PhysicalStep step, SimDuration after) {
    std::erase_if(changes_, [port](const PhysicalChange& one) { return one.port == port; });
    changes_.push_back({network_.loop().now() + after, port, step});
    arm();
}

void SubnetAgent::apply(const PhysicalChange& change) {
    Port& port = node_.port(change.port);
    PortAttributes& own = port.mutable_attributes();
    switch (change.step) {
        case PhysicalStep::kDisable:
            own.held = PhysicalState::kDisabled;
            port.link()->refresh();
            return;
        case PhysicalStep::kRetrain:
            own.held = PhysicalState::kPolling;
            port.link()->refresh();
            schedule(change.port, PhysicalStep::kEnable, kTrainingDelay);
            return;
        case PhysicalStep::kEnable:
            train(port);
            own.held = PhysicalState::kLinkUp;
            port.link()->refresh();
            return;
    }
}

// Both ends take the widest and fastest that both enable; where they enable nothing in common, what
// the link had.
void SubnetAgent::train(Port& port) {
    const LinkWidth widest = widest_of(at(port.number()), port);
    const LinkSpeed fastest = fastest_of(at(port.number()), port);
    const PortAttributes& a = port.attributes();
    const PortAttributes& b = port.peer()->attributes();
    const auto enables = [](std::uint8_t enabled, unsigned bit) {
        return enabled == 0 || (enabled & bit) != 0;
    };
    LinkWidth width = a.width;
    for (const LinkWidthProperties& row : kLinkWidths) {  // ascending
        const auto bit = static_cast<unsigned>(row.width);
        if ((widths_up_to(widest) & bit) != 0 && enables(a.width_enabled, bit) &&
            enables(b.width_enabled, bit)) {
            width = row.width;
        }
    }
    LinkSpeed speed = a.speed;
    for (const SpeedBits& row : kSpeedBits) {  // ascending
        const bool is_own_kind = row.speed != LinkSpeed::kFdr10 && row.speed != LinkSpeed::kXdr;
        const bool enabled = row.extended != 0 ? enables(a.extended_speed_enabled, row.extended) &&
                                                     enables(b.extended_speed_enabled, row.extended)
                                               : enables(a.speed_enabled, row.base) &&
                                                     enables(b.speed_enabled, row.base);
        if (enabled && row.speed <= fastest && (is_own_kind || row.speed == fastest)) {
            speed = row.speed;
        }
    }
    if (width != a.width || speed != a.speed) {
        port.link()->set_rate(width, speed);
    }
}

Status SubnetAgent::get_guid_info(const Request& request, mad::Bytes data) {
    const std::vector<GidEntry>& gids = node_.port(request.own).attributes().gids;
    const std::size_t first = request.modifier * mad::guid_info::kGuidsPerBlock;
    if (first >= identity_.gid_entries) {
        return Status::kBadValue;
    }
    for (std::size_t i = 0; i < mad::guid_info::kGuidsPerBlock && first + i < gids.size(); ++i) {
        mad::set(data, mad::element(mad::guid_info::kFirstGuid, i),
                 gids[first + i].gid.interface_id());
    }
    return Status::kOk;
}

// GUID 0 is the port's own and stays (IBA 14.2.5.5).
Status SubnetAgent::set_guid_info(const Request& request, mad::ConstBytes data) {
    Port& port = node_.port(request.own);
    std::vector<GidEntry>& gids = port.mutable_attributes().gids;
    const std::size_t first = request.modifier * mad::guid_info::kGuidsPerBlock;
    if (first >= identity_.gid_entries) {
        return Status::kBadValue;
    }
    bool changed = false;
    for (std::size_t i = 0; i < mad::guid_info::kGuidsPerBlock; ++i) {
        const std::size_t index = first + i;
        const std::uint64_t guid = mad::get(data, mad::element(mad::guid_info::kFirstGuid, i));
        const bool is_new = guid != 0 && index >= gids.size();
        if (index == 0 || index >= identity_.gid_entries || (guid == 0 && index >= gids.size()) ||
            (!is_new && gids[index].gid.interface_id() == guid)) {
            continue;
        }
        grow_to(gids, index);
        gids[index].gid = guid == 0 ? Gid{} : make_gid(gids[0].gid.subnet_prefix(), Guid(guid));
        changed = true;
    }
    if (changed && !is_switch()) {
        port.raise(PortEvent::kGidChange);
    }
    return Status::kOk;
}

// AttributeModifier: the port of a switch at bits 31:16, the block at 15:0 (IBA 14.2.5.7).
Status SubnetAgent::get_pkeys(const Request& request, mad::Bytes data) {
    const auto port = named_port(request, is_switch() ? request.modifier >> 16 : 0);
    const std::size_t first = (request.modifier & 0xFFFF) * mad::tables::kPkeysPerBlock;
    if (!port || first >= identity_.pkey_entries) {
        return Status::kBadValue;
    }
    const std::vector<std::uint16_t>& pkeys = node_.port(*port).attributes().pkeys;
    for (std::size_t i = 0; i < mad::tables::kPkeysPerBlock && first + i < pkeys.size(); ++i) {
        mad::set(data, mad::element(mad::tables::kFirstPkey, i), pkeys[first + i]);
    }
    return Status::kOk;
}

// A table never gets shorter: queue pairs hold indices into it.
Status SubnetAgent::set_pkeys(const Request& request, mad::ConstBytes data) {
    const auto named = named_port(request, is_switch() ? request.modifier >> 16 : 0);
    const std::size_t first = (request.modifier & 0xFFFF) * mad::tables::kPkeysPerBlock;
    if (!named || first >= identity_.pkey_entries) {
        return Status::kBadValue;
    }
    Port& port = node_.port(*named);
    std::vector<std::uint16_t>& pkeys = port.mutable_attributes().pkeys;
    const std::vector<std::uint16_t> before = pkeys;
    for (std::size_t i = 0; i < mad::tables::kPkeysPerBlock; ++i) {
        const std::size_t index = first + i;
        const auto pkey =
            static_cast<std::uint16_t>(mad::get(data, mad::element(mad::tables::kFirstPkey, i)));
        if (index < identity_.pkey_entries && (pkey != 0 || index < pkeys.size())) {
            grow_to(pkeys, index);
            pkeys[index] = pkey;
        }
    }
    if (pkeys != before && !is_switch()) {
        port.raise(PortEvent::kPkeyChange);
    }
    return Status::kOk;
}

}  // namespace fabric
