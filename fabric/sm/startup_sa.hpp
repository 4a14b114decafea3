// Subnet administration beside the start-up subnet manager: paths and multicast groups, which is
// what hosts' kernels ask for before programs communicate (IBA 15.2.5.16, 15.2.5.17). As that
// manager it reads and writes the network directly; what it is asked, and what it answers, are
// datagrams. Refuses every other query, and RMPP.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/mad/datagram.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/sa_records.hpp"

namespace fabric {

class StartupSa final : private AgentClient {
  public:
    // `port` is the subnet manager's. Both outlive it. Numbered apart (AgentSpec), its agent
    // changes no other's number.
    StartupSa(Network& network, ManagementPort& port);
    ~StartupSa();
    StartupSa(const StartupSa&) = delete;
    StartupSa& operator=(const StartupSa&) = delete;

    // Routes have changed, or ports have come and gone: groups follow.
    void network_changed() { write_groups(); }

  private:
    using Record = std::vector<std::uint8_t>;
    struct Answer {
        mad::Status status = mad::Status::kOk;
        Record record{};
    };
    using Member = std::pair<NodeId, PortNumber>;
    struct Group {
        Record record;                           // without a member's components
        std::map<Member, std::uint8_t> members;  // JoinState
    };

    void datagram_received(const ReceivedDatagram& datagram) override;
    void send_finished(const FinishedSend& /*send*/) override {}

    Answer execute(const mad::Datagram& query);
    [[nodiscard]] Answer path(const mad::Datagram& query) const;
    [[nodiscard]] const Port* find_end(const mad::Datagram& query, bool is_source) const;
    template <class F>
    [[nodiscard]] const Port* find_port(F&& is_it) const;
    [[nodiscard]] const Port* find_gid(const Gid& gid) const;

    // startup_sa_groups.cpp
    Answer join(const mad::Datagram& query);
    Answer leave(const mad::Datagram& query);
    [[nodiscard]] Group make_group(const mad::Datagram& query, const Gid& mgid) const;
    [[nodiscard]] Gid free_mgid() const;
    [[nodiscard]] Lid free_mlid() const;
    void write_groups();

    Network& network_;
    ManagementPort& port_;
    std::optional<AgentId> agent_;
    std::map<Gid, Group> groups_;
};

}  // namespace fabric
