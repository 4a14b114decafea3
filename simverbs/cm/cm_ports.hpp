// Joins the communication manager of an HCA to the management ports of its ports: an agent on each
// sends what the manager sends, and hands it what arrives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fabric/core/strong_id.hpp"
#include "fabric/mad/managed_network.hpp"

#include "simverbs/cm/host_cm.hpp"

namespace simverbs::cm {

class CmPorts final : public CmCarrier {
  public:
    // Registers on every port of the HCA. A port where another agent takes messages of
    // communication management sends and receives nothing here. `network` outlives it.
    CmPorts(const fabric::ManagedNetwork& network, fabric::NodeId hca);
    ~CmPorts();
    CmPorts(const CmPorts&) = delete;
    CmPorts& operator=(const CmPorts&) = delete;

    // CmIdentity::transaction_id_high of the manager.
    [[nodiscard]] std::uint32_t transaction_id_high() const;

    // nullptr, as at first: datagrams that arrive are dropped, and none is sent.
    void set_manager(HostCm* manager) { manager_ = manager; }

    // Sends to queue pair 1 with its Q_Key, whatever the address has. A datagram that the port
    // refuses (ManagementPort::send) is lost; the timer of its connection repeats it.
    void send(const Address& to, const Datagram& datagram) override;

  private:
    class PortAgent final : public fabric::AgentClient {
      public:
        PortAgent(CmPorts& ports, fabric::ManagementPort& port);
        ~PortAgent();
        PortAgent(const PortAgent&) = delete;
        PortAgent& operator=(const PortAgent&) = delete;

        [[nodiscard]] std::optional<fabric::AgentId> id() const { return id_; }
        [[nodiscard]] fabric::PortNumber number() const { return port_.port().number(); }
        void send(const fabric::DatagramAddress& to, const Datagram& datagram);

      private:
        void datagram_received(const fabric::ReceivedDatagram& received) override;
        void send_finished(const fabric::FinishedSend& /*send*/) override {}

        CmPorts& ports_;
        fabric::ManagementPort& port_;
        std::optional<fabric::AgentId> id_;
    };

    HostCm* manager_ = nullptr;
    std::vector<std::unique_ptr<PortAgent>> agents_;  // in order of ports
};

}  // namespace simverbs::cm
