// A switch: forwards by destination LID through a linear table (IBA 14.2.5.10) and, for groups, a
// multicast table (14.2.5.12), or on Ethernet by destination MAC address. It stores a frame before
// it forwards it, or cuts through. Refuses learning.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/net/ethernet_routes.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

class Switch final : public Node {
  public:
    // From the last bit that it waits for to the first bit out on a free port: about what a switch
    // of the EDR generation takes.
    static constexpr SimDuration kDefaultForwardingDelay{100'000};
    static constexpr std::uint16_t kNoRoute = 0xFFFF;

    // The part of a frame that a switch needs before it cuts through: all the headers that it looks
    // at.
    static constexpr std::uint32_t kCutThroughBytes = 64;

    Switch(NodeId id, std::string name, std::uint16_t port_count, bool cuts_through,
           const NetworkServices& services);

    // Returns true if a frame leaves before it is in as a whole, where the way out is no faster
    // than the way in. Its last bit never leaves before it has come.
    [[nodiscard]] bool cuts_through() const { return cuts_through_; }

    void set_forwarding_delay(SimDuration delay) {
        end_passages();
        forwarding_delay_ = delay;
    }
    [[nodiscard]] SimDuration forwarding_delay() const { return forwarding_delay_; }

    // Replaces the linear forwarding table: [lid] is the port to leave by, 0 for the switch itself,
    // kNoRoute for none.
    void set_forwarding_table(std::vector<std::uint16_t> table) {
        end_passages();
        table_ = std::move(table);
    }
    // One entry of it.
    void set_route(Lid lid, std::uint16_t port);
    [[nodiscard]] std::uint16_t route(Lid lid) const {
        return lid.value() < table_.size() ? table_[lid.value()] : kNoRoute;
    }

    // Replaces the multicast forwarding table: of each group the ports by which a frame for it
    // leaves. It never leaves by the port that it came in by. A group that is not in the table has
    // no route.
    using MulticastTable = std::map<Lid, std::vector<std::uint16_t>>;
    void set_multicast_table(MulticastTable table) { multicast_ = std::move(table); }
    [[nodiscard]] const MulticastTable& multicast_table() const { return multicast_; }

    // Makes it an Ethernet switch. A station that several ports lead to is reached by the one that
    // a hash of the flow names: frames of one flow stay in order. Groups and stations that nobody
    // knows are flooded along the tree.
    void set_ethernet_routes(EthernetRoutes routes);

    void receive(Port& port, FramePtr frame) override;
    void port_changed(Port& port, PortEvent event) override;

    // Returns the port by which all packets of a train that comes in by `port` leave, each in the
    // lane that it came in and as soon as it may; nullptr if they have to come one by one.
    [[nodiscard]] Port* way_of_train(Port& port, Frame& train);
    // A train passes: until end_passages().
    void train_passes() { trains_pass_ = true; }

  private:
    void end_passages();
    void forward(Port& port, FramePtr frame, std::uint16_t number);
    // The functions that are never inlined would be most of the code of receive(), and a packet
    // with one destination on InfiniBand needs none of them.
    [[gnu::noinline]] void forward_to_group(Port& port, FramePtr frame);
    void send_out(Port& port, FramePtr frame, Port& out);
    [[nodiscard]] SimTime ready_at(const Port& port, const Frame& frame, const Port& out) const;
    [[gnu::noinline]] void consume(Port& port, FramePtr frame);
    [[gnu::noinline]] void receive_ethernet(Port& port, FramePtr frame);
    [[nodiscard]] std::uint16_t route_to(const Station& station, const Frame& frame) const;
    [[gnu::noinline]] void flood(Port& port, FramePtr frame);
    template <class Outs>
    void replicate(Port& port, FramePtr frame, const Outs& for_each_out);

    const NetworkServices& services_;
    SimDuration forwarding_delay_ = kDefaultForwardingDelay;
    std::vector<std::uint16_t> table_;
    EthernetRoutes ethernet_;
    MulticastTable multicast_;
    bool is_ethernet_ = false;
    bool cuts_through_;
    bool trains_pass_ = false;
};

}  // namespace fabric
