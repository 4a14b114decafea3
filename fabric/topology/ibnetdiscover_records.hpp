// The records of an ibnetdiscover text, before it is a topology: a record a node with its ports,
// and where each was written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/rate.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/node.hpp"

namespace fabric::ibnetdiscover {

struct Place {
    std::size_t file = 0;  // of Records::files
    std::size_t line = 1;
    std::size_t column = 1;
};

struct PortRecord {
    Place place;
    Guid guid;
    std::string remote_id;
    std::uint16_t remote_port = 1;
    // "4xEDR" of a comment, which is what the link runs at.
    std::optional<LinkWidth> width;
    std::optional<LinkSpeed> speed;
    // ibsim's w= and s=: what the port may run at, as masks.
    unsigned widths = ~0U;
    unsigned speeds = ~0U;
    std::optional<std::uint8_t> vls;
};

struct NodeRecord {
    Place place;
    NodeKind kind = NodeKind::kHca;
    std::string id;
    std::string description;
    std::uint16_t port_count = 0;
    Guid guid;
    std::map<std::uint16_t, PortRecord> ports;
};

struct Records {
    std::vector<std::string> files;  // names
    std::vector<NodeRecord> nodes;
    std::string error;  // "file:line:column: ...", or empty

    [[nodiscard]] std::string at(const Place& place, std::string_view text) const;
};

Records parse(std::string_view text, const std::string& file);

}  // namespace fabric::ibnetdiscover
