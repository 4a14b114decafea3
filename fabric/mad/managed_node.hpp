// The management side of one node: takes SMPs and general management packets from the fabric, leads
// directed-route SMPs on (IBA 14.2.2), has its agents answer, hands the rest to the clients of its
// management ports. One datagram after the other, each kAgentDelay after the one before. Ethernet
// ports take general management packets alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/mad/datagram_pool.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/mad/node_identity.hpp"
#include "fabric/mad/performance_agent.hpp"
#include "fabric/mad/subnet_agent.hpp"
#include "fabric/net/network.hpp"

namespace fabric {

class ManagedNode final : private ManagementListener,
                          private DatagramCarrier,
                          private EventHandler {
  public:
    // The time that firmware takes to answer a datagram.
    static constexpr SimDuration kAgentDelay{1'000'000};  // 1 us

    ManagedNode(Network& network, Node& node, DatagramPool& pool, const NodeIdentity& identity);
    ~ManagedNode();
    ManagedNode(const ManagedNode&) = delete;
    ManagedNode& operator=(const ManagedNode&) = delete;

    [[nodiscard]] Node& node() const { return node_; }
    // 1..n of a host, 0 of a switch; nullptr: another number.
    [[nodiscard]] ManagementPort* find_port(PortNumber port) const;
    [[nodiscard]] PerformanceAgent& performance() { return performance_; }
    [[nodiscard]] SubnetAgent& subnet() { return subnet_; }

  private:
    struct Waiting {
        SimTime due;
        ArrivedDatagram arrived;
    };

    // More than that is a storm that no fabric survives.
    static constexpr std::size_t kMaxWaiting = 1U << 20;

    void management_arrived(Port& port, FramePtr frame) override;
    int carry(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
              const DatagramAddress& to) override;
    void mark_sm(Port& port, bool is_sm) override;
    void handle(const Event& event) override;

    void enqueue(const ArrivedDatagram& arrived);
    void process_smp(ArrivedDatagram& arrived);
    void process_general(ArrivedDatagram& arrived);
    bool advance(ArrivedDatagram& arrived, std::uint8_t port);
    void answer(const ArrivedDatagram& request, const mad::Datagram& response);
    void send_directed(const mad::Datagram& datagram, std::uint8_t out);
    // 0, or an errno (DatagramCarrier::carry).
    int send_to(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
                const DatagramAddress& to);
    int send_to_gid(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
                    const DatagramAddress& to);
    void send_to_lid(Port& port, const mad::Datagram& datagram, std::uint32_t source_qp,
                     const DatagramAddress& to);
    // Returns a frame without the headers that address it.
    FramePtr make_frame(const mad::Datagram& datagram, std::uint32_t source_qp,
                        const DatagramAddress& to);
    // Where what came in by `arrived_by` belongs.
    [[nodiscard]] PortNumber own_port(PortNumber arrived_by) const;

    Network& network_;
    Node& node_;
    DatagramPool& pool_;
    std::uint32_t frames_made_ = 0;
    SubnetAgent subnet_;
    PerformanceAgent performance_;
    EventKey key_;
    std::vector<std::unique_ptr<ManagementPort>> ports_;  // by number
    std::deque<Waiting> waiting_;                         // the first one's event is in the loop
    SimTime free_at_{};
};

}  // namespace fabric
