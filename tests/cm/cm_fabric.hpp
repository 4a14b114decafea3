// Communication managers on the hosts of a simulated fabric: every message is a frame. The passive
// side answers what it is asked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/sm/startup_sm.hpp"

#include "simverbs/cm/cm_ports.hpp"

#include "tests/cm/cm_pair.hpp"
#include "tests/fabric/mad/managed_fabric.hpp"

namespace simverbs::cm::test {

// The manager of a host's HCA with a port.
class Host final : public CmUser {
  public:
    Host(const fabric::ManagedNetwork& managed, const fabric::EndNode& hca)
        : loop_(managed.network().loop()),
          ports(managed, hca.id()),
          cm(managed.network().loop(),
             {.node = hca.id(),
              .ca_guid = hca.guid(),
              .comm_id_operand = 0x1111'0000U * (hca.id().value() + 1),
              .transaction_id_high = ports.transaction_id_high()},
             ports, *this) {
        ports.set_manager(&cm);
    }

    void cm_event(const CmEvent& event) override {
        seen.push_back({loop_.now(), event});
        Connection* const subject = cm.find(event.connection);
        if (event.type == EventType::kReqReceived) {
            EXPECT_EQ(subject->send_rep({.qpn = kPassiveQpn}), 0);
        } else if (event.type == EventType::kRepReceived) {
            EXPECT_EQ(subject->send_rtu({}), 0);
        } else if (event.type == EventType::kDreqReceived) {
            EXPECT_EQ(subject->send_drep({}), 0);
        }
    }
    // Sends a REQ.
    Connection& connect(const Address& to, std::uint32_t qpn = kActiveQpn) {
        Connection& connection = *cm.find(cm.create().value());
        ReqParameters parameters = request_parameters();
        parameters.primary.address = to;
        parameters.qpn = qpn;
        EXPECT_EQ(connection.send_req(parameters), 0);
        return connection;
    }
    void listen() { EXPECT_EQ(cm.listen(cm.create().value(), kServiceId), 0); }
    // Each event so far and when it came.
    [[nodiscard]] std::vector<std::pair<std::string, SimDuration>> events() const {
        std::vector<std::pair<std::string, SimDuration>> all;
        for (const Seen& each : seen) {
            all.emplace_back(to_string(each.event.type), each.time - fabric::kSimStart);
        }
        return all;
    }

  private:
    fabric::EventLoop& loop_;

  public:
    CmPorts ports;
    HostCm cm;
    std::vector<Seen> seen;
};

// Returns the address of a port for its peer on InfiniBand (without a GID index: by LID alone) or
// Ethernet.
inline Address address_of(const fabric::Port& port, std::optional<std::uint8_t> gid_index) {
    const fabric::PortAttributes& attributes = port.attributes();
    Address address{.port = fabric::PortNumber{1}, .remote = {.lid = attributes.lid}};
    if (gid_index) {
        address.remote.global = fabric::GlobalAddress{
            .gid = attributes.gids.at(*gid_index).gid, .gid_index = *gid_index, .hop_limit = 64};
    }
    return address;
}

class CmFabric {
  public:
    explicit CmFabric(std::string_view topology) : fabric(topology), sm_(fabric.network) {
        sm_.bring_up();
        for (std::uint32_t i = 0; i < fabric.network.host_count(); ++i) {
            hosts.push_back(std::make_unique<Host>(fabric.managed, fabric.network.host(i)));
        }
    }

    [[nodiscard]] Address address(std::size_t to, std::optional<std::uint8_t> gid_index) const {
        return address_of(fabric.port_of(to), gid_index);
    }
    void run() { fabric.run(); }

    fabric::test::ManagedFabric fabric;
    std::vector<std::unique_ptr<Host>> hosts;

  private:
    fabric::StartupSm sm_;
};

}  // namespace simverbs::cm::test
