// The subnet management agent of a node (IBA 14.2): answers Get and Set about the node, its ports
// and its tables, makes Set come true in the network, raises the port events that follow from it,
// and sends traps. Refuses the lease of an M_Key, random forwarding tables and what IBA leaves to
// vendors.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/attributes.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/mad/node_identity.hpp"
#include "fabric/net/network.hpp"

namespace fabric {

// Values that a subnet manager writes and only the agent reads, and what the port was made for.
struct PortManagement {
    LinkWidth widest = LinkWidth::k4x;
    LinkSpeed fastest = LinkSpeed::kEdr;
    std::uint64_t m_key = 0;
    std::uint16_t m_key_lease = 0;
    std::uint8_t m_key_protection = 0;
    std::uint16_t m_key_violations = 0;
    std::uint16_t p_key_violations = 0;
    std::uint16_t q_key_violations = 0;
    bool is_sm = false;
    std::uint8_t init_type = 0;
    std::uint8_t vl_high_limit = 0;
    std::uint8_t stall_and_lifetime =
        PortAttributes::kEndlessLife;        // VLStallCount and HOQLife, as in PortInfo
    std::uint8_t partition_enforcement = 0;  // and raw filters, as in PortInfo
    std::uint8_t subnet_timeout = 18;        // 4.096 us * 2^n
    std::uint8_t error_thresholds = 0x88;
    // By the port that a frame came in by, then two service levels a byte.
    std::map<std::uint8_t, std::array<std::uint8_t, 8>> sl_to_vl;
    // Low 0-31, low 32-63, high 0-31, high 32-63.
    std::array<std::array<std::uint8_t, 64>, 4> vl_arbitration{};
};

// Attributes of a switch besides its ports.
struct SwitchManagement {
    std::uint16_t linear_table_top = 0;
    std::uint16_t multicast_table_top = 0;
    std::uint8_t default_port = 0;
    std::uint8_t default_multicast_primary_port = 0;
    std::uint8_t default_multicast_other_port = 0;
    std::uint8_t lifetime = 0;
    bool port_state_changed = false;
    std::map<Lid, std::vector<bool>> multicast;  // [port]
};

// IBA 13.4.8.2, the generic ones.
enum class TrapNumber : std::uint16_t {
    kLinkState = 128,
    kLocalChange = 144,
    kBadMkey = 256,
    kBadPkey = 257,
    kBadQkey = 258,
    kSwitchBadPkey = 259,
};

class SubnetAgent final : private EventHandler {
  public:
    // A trap that nobody represses is sent so often, one subnet timeout apart.
    static constexpr std::uint32_t kTrapRepeats = 8;
    // From what happens to the trap that says so.
    static constexpr SimDuration kTrapDelay{1'000'000};  // 1 us
    // From a Set to the physical link's change, so that the answer gets away; and its training.
    static constexpr SimDuration kPhysicalDelay{10'000'000};     // 10 us
    static constexpr SimDuration kTrainingDelay{1'000'000'000};  // 1 ms

    SubnetAgent(Network& network, Node& node, const NodeIdentity& identity,
                DatagramCarrier& carrier);
    ~SubnetAgent();
    SubnetAgent(const SubnetAgent&) = delete;
    SubnetAgent& operator=(const SubnetAgent&) = delete;

    enum class Verdict : std::uint8_t {
        kAnswer,
        kSilence,  // a wrong M_Key, or a trap is repressed
        kNotMine,  // for a client of the management port
    };
    // `request` is an SMP that has reached its node; `response` is a copy of it.
    Verdict process(const ArrivedDatagram& request, mad::Datagram& response);

    // Returns true if queue pair 1 takes a datagram with these keys; counts the violation
    // otherwise.
    bool admits(PortNumber port, std::uint32_t qkey, bool knows_pkey);

    // Sends trap 128 for a switch's port, when an SM is known.
    void link_changed();
    // Trap 144 when it differs.
    void set_is_sm(PortNumber port, bool is_sm);
    void set_description(std::string description);
    [[nodiscard]] const std::string& description() const { return description_; }
    // PortInfo:CapabilityMask, IsSM included.
    [[nodiscard]] std::uint32_t capabilities(PortNumber port) const;

  private:
    static constexpr std::uint8_t kVlArbitrationEntries = 64;

    struct Request {
        PortNumber arrived_by;
        PortNumber own;  // that, or a switch's port 0
        std::uint32_t modifier;
    };
    struct Row;
    struct Trap {
        mad::Datagram datagram;
        PortNumber port;  // it leaves by
        SimTime due;
        std::uint32_t sent;
    };
    enum class PhysicalStep : std::uint8_t { kDisable, kEnable, kRetrain };
    struct PhysicalChange {
        SimTime due;
        PortNumber port;
        PhysicalStep step;
    };

    void handle(const Event& event) override;
    void arm();
    void apply(const PhysicalChange& change);

    [[nodiscard]] bool is_switch() const { return node_.kind() == NodeKind::kSwitch; }
    [[nodiscard]] Switch& as_switch() const { return static_cast<Switch&>(node_); }
    [[nodiscard]] PortManagement& at(PortNumber port) { return ports_.at(port.value()); }
    bool key_matches(const ArrivedDatagram& arrived, PortNumber own);
    mad::Status execute(const Request& request, mad::Datagram& response);
    // Which port an attribute modifier names; nothing: none of this node.
    [[nodiscard]] std::optional<PortNumber> named_port(const Request& request,
                                                       std::uint32_t number) const;

    void send_trap(TrapNumber number, mad::notice::Type type, PortNumber port,
                   mad::Datagram datagram);
    void local_change(PortNumber port, std::uint16_t bits);
    void repress(const mad::Datagram& repress);

    mad::Status get_node_description(const Request& request, mad::Bytes data);
    mad::Status get_node_info(const Request& request, mad::Bytes data);
    mad::Status get_switch_info(const Request& request, mad::Bytes data);
    mad::Status set_switch_info(const Request& request, mad::ConstBytes data);
    mad::Status get_guid_info(const Request& request, mad::Bytes data);
    mad::Status set_guid_info(const Request& request, mad::ConstBytes data);
    mad::Status get_port_info(const Request& request, mad::Bytes data);
    mad::Status set_port_info(const Request& request, mad::ConstBytes data);
    mad::Status get_pkeys(const Request& request, mad::Bytes data);
    mad::Status set_pkeys(const Request& request, mad::ConstBytes data);
    mad::Status get_sl_to_vl(const Request& request, mad::Bytes data);
    mad::Status set_sl_to_vl(const Request& request, mad::ConstBytes data);
    mad::Status get_vl_arbitration(const Request& request, mad::Bytes data);
    mad::Status set_vl_arbitration(const Request& request, mad::ConstBytes data);
    mad::Status get_linear_table(const Request& request, mad::Bytes data);
    mad::Status set_linear_table(const Request& request, mad::ConstBytes data);
    mad::Status get_multicast_table(const Request& request, mad::Bytes data);
    mad::Status set_multicast_table(const Request& request, mad::ConstBytes data);
    mad::Status get_vendor_diag(const Request& request, mad::Bytes data);

    void get_addresses(const Port& port, mad::Bytes data);
    void get_link(const Port& port, mad::Bytes data);
    void get_lanes(PortNumber port, mad::Bytes data);
    [[nodiscard]] mad::Status check_port_info(const Port& port, mad::ConstBytes data) const;
    void set_addresses(Port& port, mad::ConstBytes data);
    void set_link(Port& port, mad::ConstBytes data);
    void set_lanes(PortNumber port, mad::ConstBytes data);
    void set_state(Port& port, mad::ConstBytes data);
    void schedule(PortNumber port, PhysicalStep step, SimDuration after);
    void train(Port& port);

    Network& network_;
    Node& node_;
    NodeIdentity identity_;
    DatagramCarrier& carrier_;
    Timer timer_;
    std::string description_;
    SwitchManagement switch_;
    std::vector<PortManagement> ports_;  // by number
    std::vector<Trap> traps_;
    std::vector<PhysicalChange> changes_;
    std::uint32_t last_trap_ = 0;
};

}  // namespace fabric
