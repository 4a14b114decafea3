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
    Host(fabric::test::ManagedFabric& fabric, std::uint32_t index)
        : loop_(fabric.loop),
          ports(fabric.managed, fabric.network.host(index).id()),
          cm(fabric.loop,
             {.node = fabric.network.host(index).id(),
              .ca_guid = fabric.network.host(index).guid(),
              .comm_id_operand = 0x1111'0000U * (index + 1),
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

class CmFabric {
  public:
    explicit CmFabric(std::string_view topology) : fabric(topology), sm_(fabric.network) {
        sm_.bring_up();
        for (std::uint32_t i = 0; i < fabric.network.host_count(); ++i) {
            hosts.push_back(std::make_unique<Host>(fabric, i));
        }
    }

    // Returns the address of `to` for its peer on InfiniBand (without a GID index: by LID alone) or
    // Ethernet.
    [[nodiscard]] Address address(std::size_t to, std::optional<std::uint8_t> gid_index) const {
        const fabric::PortAttributes& port = fabric.port_of(to).attributes();
        Address address{.port = fabric::PortNumber{1}, .remote = {.lid = port.lid}};
        if (gid_index) {
            address.remote.global = fabric::GlobalAddress{
                .gid = port.gids.at(*gid_index).gid, .gid_index = *gid_index, .hop_limit = 64};
        }
        return address;
    }
    // Sends a REQ from host `from` to host `to`.
    Connection& connect(std::size_t from, const Address& to) {
        Connection& connection = *hosts[from]->cm.find(hosts[from]->cm.create().value());
        ReqParameters parameters = request_parameters();
        parameters.primary.address = to;
        EXPECT_EQ(connection.send_req(parameters), 0);
        return connection;
    }
    void run() { fabric.run(); }

    fabric::test::ManagedFabric fabric;
    std::vector<std::unique_ptr<Host>> hosts;

  private:
    fabric::StartupSm sm_;
};

}  // namespace simverbs::cm::test
