// A switch: store and forward by destination LID through a linear table (IBA 14.2.5.10), or on
// Ethernet by destination MAC address. Refuses cut-through (a frame is forwarded when its last bit
// is in), multicast on InfiniBand until groups exist, and learning.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/node.hpp"

namespace fabric {

class Switch final : public Node {
  public:
    // From the last bit in to the first bit out on a free port: about what a switch of the EDR
    // generation takes.
    static constexpr SimDuration kDefaultForwardingDelay{100'000};
    static constexpr std::uint16_t kNoRoute = 0xFFFF;

    Switch(NodeId id, std::string name, std::uint16_t port_count, const NetworkServices& services);

    void set_forwarding_delay(SimDuration delay) { forwarding_delay_ = delay; }

    // Replaces the linear forwarding table: [lid] is the port to leave by, 0 for the switch itself,
    // kNoRoute for none.
    void set_forwarding_table(std::vector<std::uint16_t> table) { table_ = std::move(table); }
    // One entry of it.
    void set_route(Lid lid, std::uint16_t port);
    [[nodiscard]] std::uint16_t route(Lid lid) const {
        return lid.value() < table_.size() ? table_[lid.value()] : kNoRoute;
    }

    // Makes it an Ethernet switch: stations by ascending address, each with the port that leads to
    // it. Groups and stations that are not in the table are reached by flooding.
    struct Station {
        MacAddress mac;
        std::uint16_t port;
    };
    void set_stations(std::vector<Station> stations);

    void receive(Port& port, FramePtr frame) override;
    void port_changed(Port& port, PortEvent event) override;

  private:
    void forward(Port& port, FramePtr frame, std::uint16_t number);
    void receive_ethernet(Port& port, FramePtr frame);
    void flood(const Port& port, FramePtr frame);

    const NetworkServices& services_;
    SimDuration forwarding_delay_ = kDefaultForwardingDelay;
    std::vector<std::uint16_t> table_;
    std::vector<Station> stations_;
    bool is_ethernet_ = false;
};

}  // namespace fabric
