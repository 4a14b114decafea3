// A port: its attributes, its state and the way out of it. The state moves only by rows of
// kPortTransitions. A frame leaves when both ends of the link are ACTIVE; otherwise it is dropped,
// counted and named. How it waits for the wire is in link_direction.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fabric/core/rate.hpp"
#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/net/drop_reason.hpp"
#include "fabric/net/ethernet.hpp"
#include "fabric/net/frame.hpp"
#include "fabric/net/gid.hpp"
#include "fabric/net/lid.hpp"
#include "fabric/net/link_layer.hpp"
#include "fabric/net/management.hpp"
#include "fabric/net/mtu.hpp"
#include "fabric/net/port_transitions.hpp"
#include "fabric/net/vl_arbitration.hpp"

namespace fabric {

class Link;
class LinkDirection;
class Network;
class Node;
struct NetworkServices;

// An event that a consumer of the port may be told of (IBA 11.6.3).
enum class PortEvent : std::uint8_t {
    kPortActive,
    kPortError,
    kLidChange,
    kSmChange,
    kPkeyChange,
    kGidChange,
    kClientReregister,
    kSpeedChange,
};

constexpr std::string_view to_string(PortEvent event) {
    switch (event) {
        case PortEvent::kPortActive:
            return "PORT_ACTIVE";
        case PortEvent::kPortError:
            return "PORT_ERR";
        case PortEvent::kLidChange:
            return "LID_CHANGE";
        case PortEvent::kSmChange:
            return "SM_CHANGE";
        case PortEvent::kPkeyChange:
            return "PKEY_CHANGE";
        case PortEvent::kGidChange:
            return "GID_CHANGE";
        case PortEvent::kClientReregister:
            return "CLIENT_REREGISTER";
        case PortEvent::kSpeedChange:
            return "DEVICE_SPEED_CHANGE";
    }
    return "?";
}

// The attributes that the subnet manager writes; link layer, width and speed come from the link. An
// Ethernet port has no LIDs and nobody who manages it.
struct PortAttributes {
    LinkLayer link_layer = LinkLayer::kInfiniband;
    Guid guid;
    MacAddress mac;
    // InfiniBand: [0] is the subnet prefix and the GUID. Ethernet, of a host: link-local and
    // IPv4-mapped, each for RoCE v1 and v2; the same in each VLAN, in the order of their ids.
    std::vector<GidEntry> gids;
    // Ethernet: the VLANs whose frames pass the port, ascending. A host's port has an interface in
    // each. Unset: all VLANs pass, and a host has an interface in none.
    std::optional<std::vector<std::uint16_t>> vlans;
    Lid lid;
    std::uint8_t lmc = 0;
    Lid sm_lid;
    std::uint8_t sm_sl = 0;
    std::vector<std::uint16_t> pkeys{0xFFFF};
    // True if frames that enter or leave a switch's port must be of a partition in `pkeys`
    // (PortInfo:PartitionEnforcementInbound, ...Outbound).
    bool enforces_partitions_in = false;
    bool enforces_partitions_out = false;
    Mtu max_mtu = Mtu::k4096;
    Mtu active_mtu = Mtu::k4096;
    std::uint32_t ethernet_mtu = kDefaultEthernetMtu;
    // Data lanes that the port has and that are in use: VL0 and up (PortInfo:VLCap,
    // OperationalVLs, as numbers of lanes).
    std::uint8_t vl_cap = 1;
    std::uint8_t operational_vls = 1;
    // PortInfo:HOQLife, of a switch's port: 4.096 us * 2^n, from 20 on without end.
    std::uint8_t head_of_queue_life = kEndlessLife;
    // By the switch port that a frame came in by; [0] is for what is made here and for ports that
    // have no table of their own. Without any, everything takes VL0. On Ethernet the lanes are the
    // priorities.
    std::vector<SlToVl> sl_to_vl;
    VlArbitrationTables vl_arbitration;
    LinkWidth width = LinkWidth::k4x;
    LinkSpeed speed = LinkSpeed::kEdr;
    // The reason why this end keeps the physical link down: kDisabled, kPolling while it trains;
    // kLinkUp: nothing. Link::refresh() follows it.
    PhysicalState held = PhysicalState::kLinkUp;
    // As PortInfo:LinkWidthEnabled, LinkSpeedEnabled, LinkSpeedExtEnabled; 0: all that is
    // supported.
    std::uint8_t width_enabled = 0;
    std::uint8_t speed_enabled = 0;
    std::uint8_t extended_speed_enabled = 0;

    static constexpr std::uint8_t kEndlessLife = 20;

    // How long a frame may be the first of its lane; SimDuration::max(): for ever.
    [[nodiscard]] SimDuration head_of_queue_limit() const {
        constexpr SimDuration kUnit{4'096'000};
        return head_of_queue_life >= kEndlessLife ? SimDuration::max()
                                                  : kUnit * (1U << head_of_queue_life);
    }
    // The most that Frame::payload_bytes may be on the link: of packets, or of Ethernet frames.
    [[nodiscard]] std::uint32_t link_mtu_bytes() const {
        return link_layer == LinkLayer::kEthernet ? ethernet_mtu : to_bytes(active_mtu);
    }
};

// As PMA's PortCounters (IBA 16.1.3.5), 64 bits wide and never sticking.
struct PortCounters {
    static constexpr std::uint64_t kDataWordBytes = 4;  // PortXmitData and PortRcvData count words

    // LRH to ICRC; Ethernet header to check sequence.
    std::uint64_t xmit_data_bytes = 0;
    std::uint64_t rcv_data_bytes = 0;
    std::uint64_t xmit_packets = 0;
    std::uint64_t rcv_packets = 0;
    std::uint64_t xmit_multicast_packets = 0;  // of all packets; the others are unicast
    std::uint64_t rcv_multicast_packets = 0;
    // Whole ticks of kWaitTickBytes in which something was ready and nothing was sent.
    std::uint64_t xmit_wait = 0;
    std::uint64_t link_downed = 0;
    // Errors of the physical link, which only faults cause.
    std::uint64_t symbol_errors = 0;
    std::uint64_t link_error_recoveries = 0;
    std::uint64_t rcv_errors = 0;
    std::uint64_t vl15_dropped = 0;
    // Ethernet: frames that left with the congestion mark that they got here; pauses asked of the
    // port at the other end.
    std::uint64_t marked = 0;
    std::uint64_t pauses_sent = 0;
    std::array<std::uint64_t, kDropReasonCount> discards{};

    // A tick is the time of eight bytes on the port, PortSamplesControl:Tick 7, as NVIDIA's Quantum
    // switches count.
    static constexpr std::uint32_t kWaitTickBytes = 8;

    [[nodiscard]] std::uint64_t discarded(DropReason reason) const {
        return discards[static_cast<std::size_t>(reason)];
    }
    [[nodiscard]] std::uint64_t total_discards() const;

    // As PortCounters sums them up.
    [[nodiscard]] std::uint64_t xmit_discards() const;
    [[nodiscard]] std::uint64_t rcv_switch_relay_errors() const;
    [[nodiscard]] std::uint64_t rcv_constraint_errors() const {
        return discarded(DropReason::kPartitionIn);
    }
    [[nodiscard]] std::uint64_t xmit_constraint_errors() const {
        return discarded(DropReason::kPartitionOut);
    }
};

class Port {
  public:
    Port(Node& node, PortNumber number, const NetworkServices& services);
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;

    [[nodiscard]] Node& node() const { return node_; }
    [[nodiscard]] PortNumber number() const { return number_; }

    [[nodiscard]] PortState state() const { return state_; }
    [[nodiscard]] PhysicalState physical_state() const {
        return attributes_.held == PhysicalState::kLinkUp ? physical_state_ : attributes_.held;
    }
    [[nodiscard]] const PortAttributes& attributes() const { return attributes_; }
    [[nodiscard]] const PortCounters& counters() const {
        end_passage();
        return counters_;
    }

    // nullptr when nothing is plugged in.
    [[nodiscard]] Link* link() const { return link_; }
    [[nodiscard]] Port* peer() const { return peer_; }
    // The directions that lead from here and to here; nullptr without a link.
    [[nodiscard]] LinkDirection* outgoing() const { return out_; }
    [[nodiscard]] LinkDirection* incoming() const { return in_; }

    // Puts the frame on the wire in its turn, or drops it.
    void send(FramePtr frame);
    // The same, but not before `ready`, and in the lane that the frame already has (a switch).
    void send_at(FramePtr frame, SimTime ready);

    // Gives the frame the lane that its service level takes here, if it came in by port `from` (0:
    // it was made here). False: none, and it may not be sent.
    [[nodiscard]] bool assign_lane(Frame& frame, std::uint16_t from) const {
        if (attributes_.sl_to_vl.empty() || frame.vl == kManagementVl) [[likely]] {
            frame.vl = frame.vl == kManagementVl ? kManagementVl : 0;
            return true;
        }
        return look_up_lane(frame, from);
    }

    // When a frame sent now would start on the wire, as far as other frames are in its way; never
    // before now(). For pacing.
    [[nodiscard]] SimTime transmitter_free_at() const;

    // Counts and traces a frame that ends here, and recycles it.
    [[gnu::noinline]] void drop(FramePtr frame, DropReason reason);

    // Moves the state by a row of kPortTransitions. False: no row; nothing changed. Entering and
    // leaving ACTIVE raise kPortActive and kPortError.
    bool apply(PortTrigger trigger);

    // For whoever manages the subnet: change attributes, then say what the change amounts to.
    [[nodiscard]] PortAttributes& mutable_attributes() {
        end_passage();
        return attributes_;
    }
    // For the performance management agent and for faults.
    [[nodiscard]] PortCounters& mutable_counters() {
        end_passage();
        return counters_;
    }
    void raise(PortEvent event);

    // Enters what a train that is passing from or to this port of a switch has done so far, and
    // lets its other packets come one by one (passages.cpp).
    void end_passage() const {
        if (is_passed_) [[unlikely]] {
            end_passages();
        }
    }

  private:
    friend class Link;
    friend class LinkDirection;

    // Subnet management packets pass in INIT and ARMED too (IBA 7.2.7).
    [[nodiscard]] bool carries(const Frame& frame) const {
        return state_ == PortState::kActive ||
               (frame.vl == kManagementVl && state_ != PortState::kDown);
    }
    void attach(Link& link, Port& peer, LinkDirection& out, LinkDirection& in);
    [[gnu::noinline]] void end_passages() const;
    [[nodiscard]] bool look_up_lane(Frame& frame, std::uint16_t from) const;
    void count_sent(const Frame& frame);
    void uncount_sent(const Frame& frame);
    void count_wait(SimDuration duration, Rate rate);
    void count_received(const Frame& frame);
    // Packets of a train that have passed a switch: came in here, or left here.
    void count_passed_in(std::uint32_t wire_bytes);
    void count_passed_out(std::uint32_t wire_bytes);

    Node& node_;
    const NetworkServices& services_;
    PortNumber number_;
    PortState state_ = PortState::kDown;
    mutable bool is_passed_ = false;  // a train passes, or has passed
    PhysicalState physical_state_ = PhysicalState::kPolling;
    Link* link_ = nullptr;
    Port* peer_ = nullptr;
    LinkDirection* out_ = nullptr;
    LinkDirection* in_ = nullptr;
    PortCounters counters_;
    PortAttributes attributes_;
};

}  // namespace fabric
