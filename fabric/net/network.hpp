// A built fabric: nodes, ports and links, made from a topology and wired up physically. All ports
// with a link are in INIT: a subnet manager makes them ACTIVE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/link.hpp"
#include "fabric/net/node.hpp"
#include "fabric/net/switch.hpp"
#include "fabric/net/topology.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

class Network final : private LinkObserver {
  public:
    // `topology` has no error() (asserted). The loop and the bus outlive the network.
    Network(EventLoop& loop, trace::Bus& bus, Topology topology);
    ~Network();
    Network(const Network&) = delete;
    Network& operator=(const Network&) = delete;

    [[nodiscard]] EventLoop& loop() const { return services_.loop; }
    [[nodiscard]] trace::Bus& bus() const { return services_.bus; }
    [[nodiscard]] FramePool& frames() { return frames_; }

    // HCAs first (one a host, as a rule), then switches; NodeId is the index.
    [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
    [[nodiscard]] Node& node(NodeId id) const;
    [[nodiscard]] std::size_t host_count() const { return hosts_.size(); }
    [[nodiscard]] EndNode& host(std::size_t index) const { return *hosts_.at(index); }
    [[nodiscard]] std::size_t switch_count() const { return switches_.size(); }
    [[nodiscard]] Switch& switch_at(std::size_t index) const { return *switches_.at(index); }

    [[nodiscard]] std::size_t link_count() const { return links_.size(); }
    [[nodiscard]] Link& link(std::size_t index) const { return *links_.at(index); }

    // By name; nullptr when there is none. A link's name is its ends', in either order, and
    // "#2", "#3", ... for further links between the same two nodes: "h0-s0", "s0-h0", "s0-s1#2".
    [[nodiscard]] Node* find_node(std::string_view name) const;
    // The first HCA of a host.
    [[nodiscard]] EndNode* find_host(std::string_view name) const;
    [[nodiscard]] Link* find_link(std::string_view name) const;
    // The same, asserted to exist.
    [[nodiscard]] Link& link(std::string_view name) const;

    // Returns the Ethernet port that has this address, as ARP or neighbour discovery would find it,
    // in a VLAN (0: untagged). It may be the port that asks. nullptr: no port has it.
    [[nodiscard]] const Port* find_neighbour(const Gid& gid, std::uint16_t vlan = 0) const;

    // When no event is left: a cycle of ports whose frames wait for each other, traced and in words
    // ("s0 port 1 > s1 port 2 > s0 port 1"). Empty: there is none.
    std::string report_credit_loop();

    // Seeds decisions that depend on chance: which frames a switch marks. At first 0.
    void set_seed(std::uint64_t seed) { services_.seed = seed; }

    // Says in the trace what the numbers of nodes stand for, which links there are and how they
    // are.
    void describe() const;

    // nullptr: nobody.
    void set_link_observer(LinkObserver* observer) { services_.observer = observer; }

    // nullptr: nobody. It is told while somebody wants events of category kPacket.
    void set_frame_observer(FrameObserver* observer) {
        cut_trains();
        services_.frame_observer = observer;
    }

    // Trains that hosts take when their last packet has arrived.
    [[nodiscard]] DeferredArrivals& deferred_arrivals() { return deferred_; }
    [[nodiscard]] const DeferredArrivals& deferred_arrivals() const { return deferred_; }

    // Every frame on a link or waiting for one, link by link.
    template <class F>
    void for_each_frame_in_flight(F&& visit) {
        for (const auto& link : links_) {
            link->for_each_frame_in_flight(visit);
        }
    }

  private:
    void build_nodes(const Topology& topology);
    void build_links(const Topology& topology);
    void set_up_ethernet();
    void link_changed(Link& link) override;
    void cut_trains();

    DeferredArrivals deferred_;
    NetworkServices services_;
    FramePool frames_;  // outlives the links, which hold frames
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<EndNode*> hosts_;
    std::vector<Switch*> switches_;
    std::vector<std::unique_ptr<Link>> links_;
};

}  // namespace fabric
