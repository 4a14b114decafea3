// The attributes of a node and of a switch's forwarding tables.
#include <algorithm>
#include <utility>

#include "fabric/mad/subnet_agent.hpp"

namespace fabric {

using mad::Status;

namespace {

constexpr std::uint16_t kLinearTableEntries = kLastUnicastLid.value() + 1;
constexpr std::uint16_t kMulticastTableEntries = 1024;
constexpr std::uint32_t kPortsAPosition = 16;

}  // namespace

Status SubnetAgent::get_node_description(const Request& /*request*/, mad::Bytes data) {
    std::copy(description_.begin(), description_.end(), data.begin());
    return Status::kOk;
}

Status SubnetAgent::get_node_info(const Request& request, mad::Bytes data) {
    const auto type = is_switch() ? mad::NodeType::kSwitch : mad::NodeType::kChannelAdapter;
    const Guid port_guid = is_switch() ? node_.guid() : node_.port(request.own).attributes().guid;
    mad::set(data, mad::node_info::kBaseVersion, 1);
    mad::set(data, mad::node_info::kClassVersion, 1);
    mad::set(data, mad::node_info::kNodeType, static_cast<std::uint64_t>(type));
    mad::set(data, mad::node_info::kPortCount, node_.port_count());
    mad::set(data, mad::node_info::kSystemImageGuid, node_.guid().value());
    mad::set(data, mad::node_info::kNodeGuid, node_.guid().value());
    mad::set(data, mad::node_info::kPortGuid, port_guid.value());
    mad::set(data, mad::node_info::kPartitionCap, identity_.pkey_entries);
    mad::set(data, mad::node_info::kDeviceId, identity_.device_id);
    mad::set(data, mad::node_info::kRevision, identity_.revision);
    mad::set(data, mad::node_info::kLocalPort, request.arrived_by.value());
    mad::set(data, mad::node_info::kVendorId, identity_.vendor_id);
    return Status::kOk;
}

Status SubnetAgent::get_switch_info(const Request& /*request*/, mad::Bytes data) {
    namespace info = mad::switch_info;
    mad::set(data, info::kLinearTableCap, kLinearTableEntries);
    mad::set(data, info::kMulticastTableCap, kMulticastTableEntries);
    mad::set(data, info::kLinearTableTop, switch_.linear_table_top);
    mad::set(data, info::kDefaultPort, switch_.default_port);
    mad::set(data, info::kDefaultMulticastPrimaryPort, switch_.default_multicast_primary_port);
    mad::set(data, info::kDefaultMulticastOtherPort, switch_.default_multicast_other_port);
    mad::set(data, info::kLifetime, switch_.lifetime);
    mad::set(data, info::kPortStateChange, switch_.port_state_changed ? 1 : 0);
    mad::set(data, info::kPartitionEnforcementCap, identity_.pkey_entries);
    mad::set(data, info::kInboundEnforcement, 1);
    mad::set(data, info::kOutboundEnforcement, 1);
    mad::set(data, info::kMulticastTableTop, switch_.multicast_table_top);
    return Status::kOk;
}

// PortStateChange is cleared by writing 1 (IBA 14.2.5.4).
Status SubnetAgent::set_switch_info(const Request& /*request*/, mad::ConstBytes data) {
    namespace info = mad::switch_info;
    const auto read = [data](mad::Field field) { return mad::get(data, field); };
    if (read(info::kLinearTableTop) >= kLinearTableEntries) {
        return Status::kBadValue;
    }
    switch_.linear_table_top = static_cast<std::uint16_t>(read(info::kLinearTableTop));
    switch_.multicast_table_top = static_cast<std::uint16_t>(read(info::kMulticastTableTop));
    switch_.default_port = static_cast<std::uint8_t>(read(info::kDefaultPort));
    switch_.default_multicast_primary_port =
        static_cast<std::uint8_t>(read(info::kDefaultMulticastPrimaryPort));
    switch_.default_multicast_other_port =
        static_cast<std::uint8_t>(read(info::kDefaultMulticastOtherPort));
    switch_.lifetime = static_cast<std::uint8_t>(read(info::kLifetime));
    if (read(info::kPortStateChange) != 0) {
        switch_.port_state_changed = false;
    }
    return Status::kOk;
}

Status SubnetAgent::get_linear_table(const Request& request, mad::Bytes data) {
    const std::size_t first = request.modifier * mad::tables::kRoutesPerBlock;
    if (request.modifier >= kLinearTableEntries / mad::tables::kRoutesPerBlock) {
        return Status::kBadValue;
    }
    for (std::size_t i = 0; i < mad::tables::kRoutesPerBlock; ++i) {
        const std::uint16_t port = as_switch().route(Lid(static_cast<std::uint16_t>(first + i)));
        data[i] =
            port == Switch::kNoRoute ? mad::tables::kNoRoute : static_cast<std::uint8_t>(port);
    }
    return Status::kOk;
}

Status SubnetAgent::set_linear_table(const Request& request, mad::ConstBytes data) {
    const std::size_t first = request.modifier * mad::tables::kRoutesPerBlock;
    if (request.modifier >= kLinearTableEntries / mad::tables::kRoutesPerBlock) {
        return Status::kBadValue;
    }
    for (std::size_t i = 0; i < mad::tables::kRoutesPerBlock; ++i) {
        const Lid lid(static_cast<std::uint16_t>(first + i));
        const std::uint16_t port = data[i] > node_.port_count() ? Switch::kNoRoute : data[i];
        if (as_switch().route(lid) != port) {
            as_switch().set_route(lid, port);
        }
    }
    return Status::kOk;
}

// AttributeModifier: 16 ports at bits 31:28, 32 groups at bits 8:0 (IBA 14.2.5.12).
Status SubnetAgent::get_multicast_table(const Request& request, mad::Bytes data) {
    const std::uint32_t position = request.modifier >> 28;
    const std::uint32_t block = request.modifier & 0x1FF;
    if (block >= kMulticastTableEntries / mad::tables::kMasksPerBlock) {
        return Status::kBadValue;
    }
    for (std::size_t i = 0; i < mad::tables::kMasksPerBlock; ++i) {
        const Lid group(static_cast<std::uint16_t>(kFirstMulticastLid.value() +
                                                   block * mad::tables::kMasksPerBlock + i));
        const auto found = switch_.multicast.find(group);
        std::uint16_t mask = 0;
        for (std::uint32_t bit = 0; found != switch_.multicast.end() && bit < kPortsAPosition;
             ++bit) {
            const std::size_t port = position * kPortsAPosition + bit;
            mask |= static_cast<std::uint16_t>(
                port < found->second.size() && found->second[port] ? 1U << bit : 0U);
        }
        mad::set(data, mad::element(mad::tables::kFirstPortMask, i), mask);
    }
    return Status::kOk;
}

Status SubnetAgent::set_multicast_table(const Request& request, mad::ConstBytes data) {
    const std::uint32_t position = request.modifier >> 28;
    const std::uint32_t block = request.modifier & 0x1FF;
    if (block >= kMulticastTableEntries / mad::tables::kMasksPerBlock) {
        return Status::kBadValue;
    }
    for (std::size_t i = 0; i < mad::tables::kMasksPerBlock; ++i) {
        const Lid group(static_cast<std::uint16_t>(kFirstMulticastLid.value() +
                                                   block * mad::tables::kMasksPerBlock + i));
        const std::uint64_t mask = mad::get(data, mad::element(mad::tables::kFirstPortMask, i));
        if (mask == 0 && !switch_.multicast.contains(group)) {
            continue;
        }
        std::vector<bool>& ports = switch_.multicast[group];
        ports.resize(node_.port_count() + 1U);
        for (std::uint32_t bit = 0; bit < kPortsAPosition; ++bit) {
            const std::size_t port = position * kPortsAPosition + bit;
            if (port < ports.size()) {
                ports[port] = (mask >> bit & 1) != 0;
            }
        }
        if (std::none_of(ports.begin(), ports.end(), [](bool one) { return one; })) {
            switch_.multicast.erase(group);
        }
    }
    Switch::MulticastTable table;
    for (const auto& [group, ports] : switch_.multicast) {
        for (std::uint16_t port = 0; port < ports.size(); ++port) {
            if (ports[port]) {
                table[group].push_back(port);
            }
        }
    }
    as_switch().set_multicast_table(std::move(table));
    return Status::kOk;
}

// AttributeModifier: a switch's input port at bits 15:8, its output port at 7:0 (IBA 14.2.5.8).
Status SubnetAgent::get_sl_to_vl(const Request& request, mad::Bytes data) {
    const auto in = static_cast<std::uint8_t>(is_switch() ? request.modifier >> 8 & 0xFF : 0);
    const auto out = named_port(request, is_switch() ? request.modifier & 0xFF : 0);
    if (!out || in > node_.port_count()) {
        return Status::kBadValue;
    }
    const auto found = at(*out).sl_to_vl.find(in);
    if (found != at(*out).sl_to_vl.end()) {
        std::copy(found->second.begin(), found->second.end(), data.begin());
    }
    return Status::kOk;
}

Status SubnetAgent::set_sl_to_vl(const Request& request, mad::ConstBytes data) {
    const auto in = static_cast<std::uint8_t>(is_switch() ? request.modifier >> 8 & 0xFF : 0);
    const auto out = named_port(request, is_switch() ? request.modifier & 0xFF : 0);
    if (!out || in > node_.port_count()) {
        return Status::kBadValue;
    }
    std::array<std::uint8_t, 8>& table = at(*out).sl_to_vl[in];
    std::copy_n(data.begin(), table.size(), table.begin());
    std::vector<SlToVl>& lanes = node_.port(*out).mutable_attributes().sl_to_vl;
    lanes.resize(std::max<std::size_t>(lanes.size(), in + 1U));
    for (std::size_t sl = 0; sl < kServiceLevels; ++sl) {
        lanes[in][sl] = static_cast<std::uint8_t>(mad::get(data, mad::element({0, 4}, sl)));
    }
    return Status::kOk;
}

// AttributeModifier: block 1 to 4 at bits 31:16, the port of a switch at 15:0 (IBA 14.2.5.9).
Status SubnetAgent::get_vl_arbitration(const Request& request, mad::Bytes data) {
    const auto port = named_port(request, is_switch() ? request.modifier & 0xFFFF : 0);
    const std::uint32_t block = request.modifier >> 16;
    if (!port || block < 1 || block > 4) {
        return Status::kBadValue;
    }
    const auto& table = at(*port).vl_arbitration[block - 1];
    std::copy(table.begin(), table.end(), data.begin());
    return Status::kOk;
}

Status SubnetAgent::set_vl_arbitration(const Request& request, mad::ConstBytes data) {
    const auto port = named_port(request, is_switch() ? request.modifier & 0xFFFF : 0);
    const std::uint32_t block = request.modifier >> 16;
    if (!port || block < 1 || block > 4) {
        return Status::kBadValue;
    }
    auto& table = at(*port).vl_arbitration[block - 1];
    std::copy_n(data.begin(), table.size(), table.begin());
    const auto weights_of = [&](std::size_t first) {
        std::vector<VlWeight> weights;
        for (const auto& part :
             {at(*port).vl_arbitration[first], at(*port).vl_arbitration[first + 1]}) {
            for (std::size_t i = 0; i < part.size(); i += 2) {
                weights.push_back({static_cast<std::uint8_t>(part[i] & 0xF), part[i + 1]});
            }
        }
        const bool is_empty = std::all_of(weights.begin(), weights.end(),
                                          [](const VlWeight& one) { return one.weight == 0; });
        return is_empty ? std::vector<VlWeight>{} : weights;
    };
    VlArbitrationTables& tables = node_.port(*port).mutable_attributes().vl_arbitration;
    tables.low = weights_of(0);
    tables.high = weights_of(2);
    return Status::kOk;
}

// Nothing has ever gone wrong: no diagnostics (IBA 14.2.5.14).
Status SubnetAgent::get_vendor_diag(const Request& /*request*/, mad::Bytes /*data*/) {
    return Status::kOk;
}

}  // namespace fabric
