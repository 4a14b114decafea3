// A subnet manager that sweeps: it finds the subnet by directed-route SMPs through the fabric,
// gives it LIDs, partitions and routes, takes its ports to ACTIVE, answers to other subnet managers
// and to traps (IBA 14.4). It sits at a host's port and uses nothing but that port's management.
// Periodic only as a standby, which asks its master whether it lives.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/core/event_loop.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/mad/management_port.hpp"
#include "fabric/mad/subnet_agent.hpp"
#include "fabric/net/node.hpp"
#include "fabric/sm/port_administration.hpp"
#include "fabric/sm/routing/choice.hpp"
#include "fabric/sm/smp_window.hpp"
#include "fabric/sm/subnet.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

class SubnetAdministration;

struct Partition {
    std::uint16_t pkey = 0x7FFF;  // without the membership bit
    // True: a full member. Others are none, but for those that `everyone` takes in.
    std::map<Guid, bool> members;
    std::optional<bool> everyone = true;
};

struct SubnetPolicy {
    std::uint8_t priority = 0;  // 0..15
    std::uint8_t lmc = 0;       // 0..7
    std::uint64_t subnet_prefix = kDefaultSubnetPrefix;
    std::uint64_t m_key = 0;
    std::vector<Partition> partitions{Partition{}};
    RoutingEngine routing = RoutingEngine::kAutomatic;
};

class SweepingSm final : public PortAdministration, private AgentClient, private EventHandler {
  public:
    // From a trap or a change of its own link to the sweep that looks into it.
    static constexpr SimDuration kSweepDelay{10'000'000};  // 10 us
    // As OpenSM: a standby asks every 10 s, and takes over after four silences.
    static constexpr SimDuration kPollInterval{10'000'000'000'000};
    static constexpr std::uint32_t kPollRetries = 4;

    // All that it is given outlives it.
    SweepingSm(ManagementPort& port, EventLoop& loop, trace::Bus& bus, SubnetPolicy policy);
    ~SweepingSm();
    SweepingSm(const SweepingSm&) = delete;
    SweepingSm& operator=(const SweepingSm&) = delete;

    // Begins the first sweep.
    void start();
    // Another sweep, as if a trap had come. False: it does not manage the subnet.
    bool resweep();
    // It does not answer and does nothing any more, as if its host had died.
    void stop();

    [[nodiscard]] mad::sm_info::State state() const { return state_; }
    // Nothing is under way: the subnet is up as far as it can be, or another manages it.
    [[nodiscard]] bool is_settled() const { return is_settled_; }
    [[nodiscard]] const Subnet& subnet() const { return subnet_; }
    // Who made the routes of the last sweep.
    [[nodiscard]] RoutingEngine engine() const { return engine_; }
    // Who else was tried, and why not.
    [[nodiscard]] const std::string& refused() const { return refused_; }
    [[nodiscard]] std::uint64_t sweeps() const { return sweeps_; }

    bool set_lid(Port& port, Lid lid) override;
    void set_pkeys(Port& port, std::vector<std::uint16_t> pkeys) override;
    bool set_gid(Port& port, std::size_t index, const Gid& gid) override;
    void set_sm_lid(Port& port, Lid lid) override;
    void ask_to_reregister(Port& port) override;

    // For the SA, which shares the port and what is known.
    [[nodiscard]] ManagementPort& port() const { return port_; }
    [[nodiscard]] const SubnetPolicy& policy() const { return policy_; }
    [[nodiscard]] std::vector<std::uint16_t> pkeys_of(Guid port) const;
    [[nodiscard]] SimTime now() const { return loop_.now(); }
    struct KnownSm {
        Lid lid;
        std::array<std::uint8_t, 64> info;  // SMInfo
    };
    // This one first.
    [[nodiscard]] std::vector<KnownSm> known_managers() const;
    // Sets the ports of each group. Calls `done` when the switches know.
    struct GroupPort {
        Guid port;
        bool receives;  // else it only sends
    };
    using Groups = std::map<Lid, std::vector<GroupPort>>;
    void set_groups(Groups groups, std::function<void()> done);

  private:
    // Tokens of sends that no window counts.
    static constexpr std::uint64_t kPollToken = 0xFFFF'FFFF;
    static constexpr std::uint64_t kControlToken = 0xFFFF'FFFE;

    void datagram_received(const ReceivedDatagram& datagram) override;
    void send_finished(const FinishedSend& send) override;
    void link_changed() override;
    void handle(const Event& event) override;

    // Requests of others (sweeping_sm_peers.cpp).
    void answer_sm_info(const ReceivedDatagram& request);
    void control(mad::sm_info::Control control);
    void acknowledge_handover();
    void trap_received(const ReceivedDatagram& request);
    [[nodiscard]] std::array<std::uint8_t, 64> own_sm_info() const;
    void read_sm_infos();
    void judge_others();
    void hand_over();
    void become_standby(const SubnetPortRef& master);
    void poll_master();
    void polled(bool answered);

    // The steps of a sweep, in this order; each begins when all of the one before is answered.
    void request_sweep(SimDuration delay);
    void enter(mad::sm_info::State state);
    [[nodiscard]] NodeId own_node() const { return port_.port().node().id(); }
    void sweep();
    void visit(const std::vector<std::uint8_t>& path, std::optional<SubnetPortRef> from);
    void found_node(mad::ConstBytes node_info, const std::vector<std::uint8_t>& path,
                    std::optional<SubnetPortRef> from);
    void read_port(const SubnetPortRef& ref, const std::vector<std::uint8_t>& path);
    void manage();
    void finish_sweep();

    // sweeping_sm_setup.cpp
    void assign_lids();
    void configure_ports();
    void configure_end_port(const SubnetPortRef& ref);
    void configure_link(const SubnetPortRef& ref);
    void write_pkeys(const SubnetPortRef& ref);
    void write_routes();
    void write_linear_table(SubnetNode& node, const std::vector<std::uint8_t>& table);
    void write_groups();
    void write_multicast_table(SubnetNode& node, const std::map<Lid, std::vector<bool>>& table);
    void set_states(PortState from, PortState to);
    void write_port(const SubnetPortRef& ref, const std::function<void(mad::Bytes)>& edit);
    [[nodiscard]] routing::Graph make_graph() const;
    [[nodiscard]] std::optional<SubnetPortRef> ref_of(Guid port) const;

    ManagementPort& port_;
    EventLoop& loop_;
    trace::Bus& bus_;
    SubnetPolicy policy_;
    Timer timer_;
    std::vector<AgentId> agents_;
    SmpWindow smps_;
    std::unique_ptr<SubnetAdministration> administration_;
    mad::sm_info::State state_ = mad::sm_info::State::kNotActive;
    Subnet subnet_;
    Subnet known_;              // before this sweep
    std::map<Guid, Lid> lids_;  // for ever: a port that returns gets its old one
    std::map<Guid, std::vector<std::uint16_t>> own_pkeys_;  // an administrator's
    struct OtherSm {
        SubnetPortRef port;
        std::uint64_t guid;
        std::uint8_t priority;
        mad::sm_info::State state;
        std::array<std::uint8_t, 64> info;
    };
    std::vector<OtherSm> others_;
    SubnetPortRef master_;
    std::optional<SubnetPortRef> better_standby_;
    std::optional<SubnetPortRef> handed_to_;
    std::uint32_t silences_ = 0;
    std::uint32_t activity_ = 0;
    Groups groups_;
    std::vector<std::function<void()>> group_waiters_;
    RoutingEngine engine_ = RoutingEngine::kMinHop;
    std::string refused_;
    std::uint64_t sweeps_ = 0;
    bool is_settled_ = true;
    bool is_sweeping_ = false;
    bool sweep_again_ = false;
    bool is_started_ = false;
    bool is_stopped_ = false;
};

}  // namespace fabric
