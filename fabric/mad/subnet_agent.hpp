// The subnet management agent of a node (IBA 14.2): answers Get and Set about the node, its ports
// and its tables, makes Set come true in the network, raises the port events that follow from it,
// and sends traps. Refuses the lease of an M_Key, random forwarding tables and what IBA leaves to
// vendors.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/mad/node_identity.hpp"
#include "fabric/net/network.hpp"

namespace fabric {

// What a subnet manager writes that nothing but the agent reads.
struct PortManagement {
    std::uint64_t m_key = 0;
    std::uint16_t m_key_lease = 0;
    std::uint8_t m_key_protection = 0;
    std::uint16_t m_key_violations = 0;
    std::uint16_t p_key_violations = 0;
    std::uint16_t q_key_violations = 0;
    bool is_sm = false;
    std::uint8_t width_enabled = 0;
    std::uint8_t width_supported = 0;
    std::uint8_t speed_enabled = 0;
    std::uint8_t speed_supported = 0;
    std::uint8_t extended_speed_enabled = 0;
    std::uint8_t extended_speed_supported = 0;
    std::uint8_t init_type = 0;
    std::uint8_t vl_high_limit = 0;
    std::uint8_t operational_vls = 1;
    std::uint8_t vl_stall_and_lifetime = 0;  // VLStallCount and HOQLife, as in PortInfo
    std::uint8_t partition_enforcement = 0;  // and raw filters, as in PortInfo
    std::uint8_t subnet_timeout = 18;        // 4.096 us * 2^n
    std::uint8_t error_thresholds = 0x88;
    std::array<std::uint8_t, 8> sl_to_vl{};                        // two a byte
    std::array<std::array<std::uint8_t, 64>, 4> vl_arbitration{};  // low 1, 2, high 1, 2
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
    // `request` is an SMP that has reached its node.
    Verdict process(const ArrivedDatagram& request, mad::Datagram& response);

    // Of a switch: trap 128, when an SM is known.
    void link_changed();
    void set_is_sm(PortNumber port, bool is_sm);
    // NodeDescription; trap 144 when it differs.
    void set_description(std::string description);
    [[nodiscard]] const std::string& description() const { return description_; }
    // PortInfo:CapabilityMask, IsSM included.
    [[nodiscard]] std::uint32_t capabilities(PortNumber port) const;

  private:
    struct Trap {
        TrapNumber number;
        std::uint64_t transaction_id;
        std::array<std::uint8_t, 64> notice;
        PortNumber port;  // it leaves by
        SimTime due;
        std::uint32_t sent;
    };
    struct PhysicalChange {
        SimTime due;
        PortNumber port;
        enum class Kind : std::uint8_t { kDisable, kEnable, kRetrain, kTrained } kind;
    };

    void handle(const Event& event) override;

    Network& network_;
    Node& node_;
    NodeIdentity identity_;
    DatagramCarrier& carrier_;
    Timer timer_;
    std::string description_;
    std::vector<PortManagement> ports_;  // by number
    std::deque<Trap> traps_;
    std::deque<PhysicalChange> changes_;
    std::uint32_t last_trap_ = 0;
};

}  // namespace fabric
