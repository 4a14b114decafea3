// A fabric with agents for tests, and a client that asks and writes down what it gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/core/event_loop.hpp"
#include "fabric/mad/attributes.hpp"
#include "fabric/mad/managed_network.hpp"
#include "fabric/net/network.hpp"
#include "fabric/trace/bus.hpp"

#include "tests/fabric/running_fabric.hpp"

namespace fabric::test {

inline NodeIdentity host_identity() {
    return {.vendor_id = 0x1234,
            .device_id = 7,
            .revision = 1,
            .pkey_entries = 64,
            .gid_entries = 16,
            .capabilities =
                mad::port_info::kIsTrapSupported | mad::port_info::kIsExtendedSpeedsSupported};
}
inline NodeIdentity switch_identity() {
    NodeIdentity identity = host_identity();
    identity.device_id = 8;
    return identity;
}

// Only wired: all ports are in INIT.
class ManagedFabric {
  public:
    explicit ManagedFabric(std::string_view spec) : ManagedFabric(topology_of(spec)) {}
    explicit ManagedFabric(Topology topology)
        : network(loop, bus, std::move(topology)),
          managed(network, pool, host_identity(), switch_identity()) {
        for (std::size_t i = 0; i < network.host_count(); ++i) {
            hosts.push_back(std::make_unique<RecordingHost>(loop));
            network.host(i).set_listener(hosts.back().get());
        }
    }

    [[nodiscard]] ManagementPort& port(std::size_t host, std::uint16_t number = 1) const {
        return *managed.find_port(network.host(host).id(), PortNumber{number});
    }
    [[nodiscard]] Port& port_of(std::size_t host) const {
        return network.host(host).port(PortNumber{1});
    }
    void run() { loop.run_until(SimTime::max()); }

    EventLoop loop;
    trace::Bus bus;
    DatagramPool pool;
    Network network;
    ManagedNetwork managed;
    std::vector<std::unique_ptr<RecordingHost>> hosts;
};

// A datagram with its common header.
inline mad::Datagram make_datagram(mad::Class management_class, mad::Method method,
                                   std::uint16_t attribute, std::uint32_t modifier = 0) {
    mad::Datagram made;
    made.set(mad::header::kBaseVersion, 1);
    made.set(mad::header::kClass, static_cast<std::uint64_t>(management_class));
    made.set(mad::header::kClassVersion, management_class == mad::Class::kSubnAdm ? 2 : 1);
    made.set(mad::header::kMethod, static_cast<std::uint64_t>(method));
    made.set(mad::header::kTransactionId, 0x1234'5678);
    made.set(mad::header::kAttributeId, attribute);
    made.set(mad::header::kAttributeModifier, modifier);
    return made;
}
inline mad::Datagram make_smp(mad::Method method, mad::Attribute attribute,
                              std::uint32_t modifier = 0) {
    return make_datagram(mad::Class::kSubnLid, method, static_cast<std::uint16_t>(attribute),
                         modifier);
}

// By directed route: `path` names the ports to leave by, the asker's own first.
inline mad::Datagram make_directed(mad::Method method, mad::Attribute attribute,
                                   const std::vector<std::uint8_t>& path,
                                   std::uint32_t modifier = 0) {
    mad::Datagram made = make_datagram(mad::Class::kSubnDirected, method,
                                       static_cast<std::uint16_t>(attribute), modifier);
    made.set(mad::smp::kHopCount, path.size());
    made.set(mad::smp::kDrSlid, 0xFFFF);
    made.set(mad::smp::kDrDlid, 0xFFFF);
    for (std::size_t i = 0; i < path.size(); ++i) {
        made.bytes[mad::smp::kInitialPath + 1 + i] = path[i];
    }
    return made;
}

// Registers itself, and keeps all that arrives.
class RecordingClient final : public AgentClient {
  public:
    struct Received {
        std::vector<std::uint8_t> bytes;
        DatagramAddress from;
        bool answers;
        std::uint64_t token;
    };
    struct Finished {
        std::uint64_t token;
        SendOutcome outcome;
    };

    RecordingClient(ManagedFabric& fabric, ManagementPort& port, const AgentSpec& spec)
        : fabric_(fabric), port_(port) {
        const std::optional<AgentId> id = port.register_agent(spec, *this);
        EXPECT_TRUE(id.has_value());
        agent = id.value_or(AgentId{});
    }
    ~RecordingClient() { port_.unregister_agent(agent); }

    void datagram_received(const ReceivedDatagram& datagram) override {
        received.push_back({{datagram.bytes.begin(), datagram.bytes.end()},
                            datagram.from,
                            datagram.answers,
                            datagram.token});
    }
    void send_finished(const FinishedSend& send) override {
        finished.push_back({send.token, send.outcome});
    }

    int send(const mad::Datagram& datagram, const DatagramAddress& to,
             SimDuration timeout = SimDuration(100'000'000'000), std::uint32_t retries = 0) {
        return port_.send(agent, {datagram.bytes, to, timeout, retries, ++token_});
    }

    // Sends, runs until nothing is left, and gives the one answer.
    std::optional<mad::Datagram> ask(const mad::Datagram& request, const DatagramAddress& to = {}) {
        received.clear();
        DatagramAddress address = to;
        if (request.is_directed() && to.lid == kNoLid) {
            address.lid = kPermissiveLid;
        }
        EXPECT_EQ(send(request, address), 0);
        fabric_.run();
        if (received.size() != 1 || received[0].bytes.size() != mad::kDatagramBytes) {
            return std::nullopt;
        }
        mad::Datagram answer;
        std::copy(received[0].bytes.begin(), received[0].bytes.end(), answer.bytes.begin());
        return answer;
    }

    AgentId agent;
    std::vector<Received> received;
    std::vector<Finished> finished;

  private:
    ManagedFabric& fabric_;
    ManagementPort& port_;
    std::uint64_t token_ = 0;
};

inline AgentSpec smp_agent() {
    return {.qp = kSubnetManagementQp};
}

}  // namespace fabric::test
