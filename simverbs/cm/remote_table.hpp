// Finds connections by their other side: by CA GUID and communication id, which recognizes a
// repeated REQ, and by CA GUID and queue pair, which recognizes a stale connection (IBA
// 12.9.8.3.1). The first connection that names an id or a queue pair keeps it until it releases it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "fabric/net/gid.hpp"

#include "simverbs/cm/connection.hpp"
#include "simverbs/cm/parameters.hpp"

namespace simverbs::cm {

class RemoteTable {
  public:
    [[nodiscard]] std::optional<ConnectionId> by_comm_id(fabric::Guid ca,
                                                         std::uint32_t comm_id) const {
        return find(comm_ids_, {ca, comm_id});
    }
    [[nodiscard]] std::optional<ConnectionId> by_qpn(fabric::Guid ca, std::uint32_t qpn) const {
        return find(qpns_, {ca, qpn});
    }

    void insert(ConnectionId connection, const Remote& remote) {
        comm_ids_.try_emplace({remote.ca_guid, remote.comm_id}, connection);
        qpns_.try_emplace({remote.ca_guid, remote.qpn}, connection);
    }
    void release_qpn(ConnectionId connection, const Remote& remote) {
        erase(qpns_, {remote.ca_guid, remote.qpn}, connection);
    }
    void release(ConnectionId connection, const Remote& remote) {
        release_qpn(connection, remote);
        erase(comm_ids_, {remote.ca_guid, remote.comm_id}, connection);
    }

  private:
    using Key = std::pair<fabric::Guid, std::uint32_t>;
    using Map = std::map<Key, ConnectionId>;

    static std::optional<ConnectionId> find(const Map& map, const Key& key) {
        const auto found = map.find(key);
        return found == map.end() ? std::nullopt : std::optional(found->second);
    }
    static void erase(Map& map, const Key& key, ConnectionId connection) {
        const auto found = map.find(key);
        if (found != map.end() && found->second == connection) {
            map.erase(found);
        }
    }

    Map comm_ids_;
    Map qpns_;
};

}  // namespace simverbs::cm
