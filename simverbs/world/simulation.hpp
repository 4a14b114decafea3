// A whole simulation: event loop, trace, fabric, subnet manager and a device a host. It knows
// neither threads nor the wall: somebody else decides when a step runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/core/assert.hpp"
#include "fabric/core/event_loop.hpp"
#include "fabric/core/outcome.hpp"
#include "fabric/mad/managed_network.hpp"
#include "fabric/net/network.hpp"
#include "fabric/sm/startup_sm.hpp"
#include "fabric/sm/sweeping_sm.hpp"
#include "fabric/trace/bus.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/model/personality.hpp"
#include "simverbs/model/psn.hpp"

namespace simverbs {

// Who brings the InfiniBand ports of a world up.
enum class SubnetManagement : std::uint8_t {
    kStartup,  // at once, without datagrams
    kSweep,    // a subnet manager at the first host's first port, by datagrams
    kNone,     // nobody but what is started in the world: OpenSM, say
};
inline constexpr auto kSubnetManagementNames =
    std::to_array<std::pair<std::string_view, SubnetManagement>>({
        {"startup", SubnetManagement::kStartup},
        {"sweep", SubnetManagement::kSweep},
        {"none", SubnetManagement::kNone},
    });
std::string_view to_string(SubnetManagement management);

struct SimulationOptions {
    std::string topology = "star:2";  // a generator or the path of a file
    std::string topology_name{};      // how answers and errors call it; empty: `topology`
    std::string personality = "spec";
    std::uint64_t seed = 1;
    std::uint32_t first_psn = 0;  // where a program's PSN 0 is on the wire
    std::uint32_t first_qpn = 1;  // low 16 bits of the first number of a context
    bool random_keys = false;     // drawn from the seed; else rising
    SubnetManagement subnet_management = SubnetManagement::kStartup;
    std::optional<fabric::RoutingEngine> routing{};  // unset: as the topology has it
};

class Simulation final : public FaultEnvironment,
                         private fabric::ReplayContext,
                         private fabric::EventHandler {
  public:
    // nullptr with `error` set when the options name something that does not exist.
    static fabric::Outcome<std::unique_ptr<Simulation>> make(const SimulationOptions& options);
    ~Simulation();
    Simulation(const Simulation&) = delete;
    Simulation& operator=(const Simulation&) = delete;

    [[nodiscard]] const SimulationOptions& options() const { return options_; }
    [[nodiscard]] fabric::EventLoop& loop() override { return loop_; }
    [[nodiscard]] fabric::trace::Bus& bus() override { return bus_; }
    [[nodiscard]] fabric::Network& network() override { return network_; }
    [[nodiscard]] std::string_view topology() const override {
        return options_.topology_name.empty() ? options_.topology : options_.topology_name;
    }
    [[nodiscard]] std::uint64_t seed() const override { return options_.seed; }

    // The management of every node; clients of ports stand in for user-level ones.
    [[nodiscard]] fabric::ManagedNetwork& managed_network() { return *managed_network_; }
    [[nodiscard]] fabric::PortAdministration* subnet_manager() override { return administration_; }
    // nullptr: the world has none.
    [[nodiscard]] fabric::SweepingSm* sweeping_sm() { return sweeping_sm_.get(); }
    // Names the routing engine that was asked for where it does not suit the fabric, why, and the
    // one that routes instead; "" where it is used, or none was asked for.
    [[nodiscard]] std::string describe_other_routing() const;
    bool stop_subnet_manager() override;
    // Programs are told of DEVICE_SPEED_CHANGE, which older ones do not know, if `wanted`; at first
    // they are not.
    void tell_speed_changes(bool wanted) { commons_.tells_speed_changes = wanted; }

    void set_device_faults(DeviceFaults* faults) override { commons_.faults = faults; }

    void set_programs(HostPrograms* programs) { programs_ = programs; }
    [[nodiscard]] HostPrograms* programs() const override { return programs_; }
    // Before faults are injected.
    void set_branch_points(BranchPoints* points) { branch_points_ = points; }
    [[nodiscard]] BranchPoints* branch_points() const override { return branch_points_; }

    [[nodiscard]] std::size_t hca_count() const { return hcas_.size(); }
    [[nodiscard]] Hca& hca(std::size_t index) const override { return *hcas_.at(index); }

    [[nodiscard]] Hca* hca_at(fabric::NodeId node) const override {
        return node.value() < commons_.by_node.size() ? commons_.by_node[node.value()] : nullptr;
    }

    [[nodiscard]] std::vector<std::size_t> hcas_of(std::string_view host) const override;
    [[nodiscard]] Hca* find_hca(std::string_view name) const override;

    // Says in the trace what its numbers stand for.
    void describe();

    // Runs all events of the next instant, a train being one; how many there were. Hands over
    // events that wait.
    std::size_t step();
    // The same, unless that instant is after `latest`. Trains may be deferred then: before anybody
    // but this has a turn, settle().
    std::size_t run_instant(fabric::SimTime latest = fabric::SimTime::max());
    void settle() { network_.deferred_arrivals().settle(); }
    // step() with trains packet by packet, so that time does not get past that instant.
    std::size_t step_exactly();
    // step(), on and on while frames alone move and nothing comes of it that a program may wait
    // for: neither a record of the run digest nor what `deliveries` counts. Packets inside a
    // message are no news, so it is the same to a program whether they come one by one or as a
    // train. What was delivered before, outside any step, is news too: then step_exactly(). After
    // the first step none is taken that is `longest` long or longer. `timers` of devices, which
    // send what waits for credits, say, may be news, too.
    enum class Timers : bool { kAreNews, kAreNone };
    template <class F>
    std::size_t step_to_news(F&& deliveries,
                             fabric::SimDuration longest = fabric::SimDuration::max(),
                             Timers timers = Timers::kAreNews) {
        const std::uint64_t records = bus_.run_records();
        const std::uint64_t delivered = deliveries();
        if (std::exchange(noticed_, delivered) != delivered) {
            const std::size_t events = step_exactly();
            noticed_ = deliveries();
            return events;
        }
        std::size_t events = 0;
        for (bool news = false; !news;) {
            const std::size_t ran = run_instant();
            events += ran;
            news = ran == 0 || (timers == Timers::kAreNews && !loop_.only_frames_moved()) ||
                   bus_.run_records() != records || deliveries() != delivered ||
                   (longest < fabric::SimDuration::max() && next_step() >= longest);
        }
        settle();
        noticed_ = deliveries();
        return events;
    }
    // How far away the next instant is; zero where no event is left.
    [[nodiscard]] fabric::SimDuration next_step() const {
        const auto next = loop_.next_time();
        return next ? std::min(*next, network_.deferred_arrivals().next_arrival()) - loop_.now()
                    : fabric::SimDuration::zero();
    }
    // Ports whose frames wait for each other for ever, found when no event was left; empty: none.
    [[nodiscard]] const std::string& credit_loop() const { return credit_loop_; }
    // An event `after` now, behind all else of its instant; those of one instant in the order of
    // these calls.
    void schedule_mark(fabric::SimDuration after, fabric::EventHandler& handler);
    // Runs until virtual time has moved by `duration`: a mark stands at the end.
    void run_for(fabric::SimDuration duration);
    // "0.000051086560 s of virtual time, run digest ... of 812 records": what a run that repeats
    // itself has again. The time is that of the last record: whether events without one still came
    // after it depends on when the program ended.
    [[nodiscard]] std::string summary() const;

  private:
    template <class F>
    std::size_t run(F&& instant);

    // `personalities`: one an HCA, by rank.
    Simulation(SimulationOptions options, fabric::Topology topology,
               const std::vector<const Personality*>& personalities);
    void start_subnet_management();
    [[nodiscard]] fabric::ManagementPort* port_of_startup_sm() const;
    [[nodiscard]] fabric::SimTime now() const override { return loop_.now(); }
    [[nodiscard]] std::string replay_line() const override;
    void handle(const fabric::Event& event) override;

    SimulationOptions options_;
    fabric::RoutingEngine routing_;
    fabric::EventLoop loop_;
    fabric::trace::Bus bus_;
    HcaCommons commons_;
    fabric::DatagramPool datagrams_;
    fabric::Network network_;
    std::vector<std::unique_ptr<Hca>> hcas_;
    std::unique_ptr<fabric::ManagedNetwork> managed_network_;
    std::unique_ptr<fabric::StartupSm> startup_sm_;
    std::unique_ptr<fabric::SweepingSm> sweeping_sm_;
    fabric::PortAdministration* administration_ = nullptr;
    HostPrograms* programs_ = nullptr;
    BranchPoints* branch_points_ = nullptr;
    std::uint32_t marks_ = 0;
    std::string credit_loop_;
    std::uint64_t noticed_ = 0;  // deliveries when the last step ended
    bool reached_ = false;       // the end of run_for
};

// "0.000070649600 s".
std::string in_seconds(fabric::SimTime time);

}  // namespace simverbs
