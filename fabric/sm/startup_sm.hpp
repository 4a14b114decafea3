// The start-up subnet manager: gives a network addresses and routes and makes its ports ACTIVE, by
// direct access and without management datagrams. Follows links that go down and come up again,
// after a delay in virtual time; never does anything periodically. It acts from the first host's
// first InfiniBand port, leaves Ethernet alone, and refuses partitions, LMC and QoS.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/timer.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/port_administration.hpp"
#include "fabric/sm/startup_sa.hpp"

namespace fabric {

class StartupSm final : public PortAdministration, public LinkObserver, public EventHandler {
  public:
    // From a change of a link to the subnet manager's answer: a trap and a light sweep.
    static constexpr SimDuration kDefaultReactionDelay{1'000'000'000};  // 1 ms

    explicit StartupSm(Network& network, RoutingEngine routing = RoutingEngine::kAutomatic,
                       SimDuration reaction_delay = kDefaultReactionDelay);
    ~StartupSm();
    StartupSm(const StartupSm&) = delete;
    StartupSm& operator=(const StartupSm&) = delete;

    // At once, at now(): LIDs from 1 in order of nodes and ports, the same GID prefix and P_Key
    // everywhere, MTUs, forwarding tables, then INIT -> ARMED -> ACTIVE.
    void bring_up();

    // From now on it answers queries at `port`, its own, which outlives it.
    void answer_queries(ManagementPort& port) {
        administration_ = std::make_unique<StartupSa>(network_, port);
    }
    // Its LID; kNoLid where no port is InfiniBand.
    [[nodiscard]] Lid lid() const { return sm_lid_; }

    bool set_lid(Port& port, Lid lid) override;
    void set_pkeys(Port& port, std::vector<std::uint16_t> pkeys) override;
    bool set_gid(Port& port, std::size_t index, const Gid& gid) override;
    void set_sm_lid(Port& port, Lid lid) override;
    void ask_to_reregister(Port& port) override;

    void link_changed(Link& link) override;
    void handle(const Event& event) override;

    // The engine that made the routes, and which others were tried, and why not.
    [[nodiscard]] RoutingEngine engine() const { return engine_; }
    [[nodiscard]] const std::string& refused() const { return refused_; }

  private:
    [[nodiscard]] bool is_taken(Lid lid) const;
    void assign_lids();
    void configure_port(Port& port);
    void build_routes();
    void activate(Link& link);

    Network& network_;
    RoutingEngine routing_;
    RoutingEngine engine_ = RoutingEngine::kMinHop;
    std::string refused_;
    SimDuration reaction_delay_;
    Lid sm_lid_;
    std::deque<Timer> reactions_;  // one a link
    std::unique_ptr<StartupSa> administration_;
    bool is_up_ = false;
};

}  // namespace fabric
