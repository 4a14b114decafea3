// A subnet as its manager knows it: nodes by GUID, with what their agents have said. It was found
// by datagrams; nothing here knows the network.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/mad/attributes.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"

namespace fabric {

struct SubnetPortRef {
    Guid node;
    std::uint8_t port = 0;

    friend auto operator<=>(const SubnetPortRef&, const SubnetPortRef&) = default;
};

struct SubnetPort {
    bool is_known = false;
    std::array<std::uint8_t, mad::port_info::kBytes> info{};
    std::vector<std::uint8_t> path;  // to this port's agent, from the manager
    Guid guid;                       // of a host's port, and of a switch's port 0
    std::optional<SubnetPortRef> peer;
    std::vector<std::uint16_t> pkeys;      // as last read or written
    std::array<std::uint8_t, 64> guids{};  // GUIDInfo, the first block

    [[nodiscard]] std::uint64_t get(mad::Field field) const { return mad::get(info, field); }
    [[nodiscard]] Lid lid() const {
        return Lid(static_cast<std::uint16_t>(get(mad::port_info::kLid)));
    }
    [[nodiscard]] unsigned state() const {
        return static_cast<unsigned>(get(mad::port_info::kState));
    }
};

struct SubnetNode {
    Guid guid;
    mad::NodeType type = mad::NodeType::kChannelAdapter;
    std::array<std::uint8_t, mad::node_info::kBytes> info{};
    std::array<std::uint8_t, mad::kNodeDescriptionBytes> description{};
    std::array<std::uint8_t, mad::switch_info::kBytes> switch_info{};
    std::vector<SubnetPort> ports;  // by number
    // The contents of the switch's tables, as far as it is known.
    std::vector<std::uint8_t> linear_table;
    std::map<Lid, std::vector<bool>> multicast_table;  // [port]

    [[nodiscard]] bool is_switch() const { return type == mad::NodeType::kSwitch; }
    [[nodiscard]] std::uint8_t port_count() const {
        return static_cast<std::uint8_t>(ports.size() - 1);
    }
};

struct Subnet {
    std::map<Guid, SubnetNode> nodes;

    [[nodiscard]] SubnetPort* find(const SubnetPortRef& ref);
    [[nodiscard]] const SubnetPort* find(const SubnetPortRef& ref) const;
    // Ports that have LIDs, by their GUIDs: of hosts, and port 0 of switches.
    [[nodiscard]] std::map<Guid, SubnetPortRef> end_ports() const;
    // Who answers to a LID, LMC included.
    [[nodiscard]] std::optional<SubnetPortRef> owner_of(Lid lid) const;
};

}  // namespace fabric
