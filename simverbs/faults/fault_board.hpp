// The faults of a world, by id: when each is due, and who is told. Ids count from 1 and are never
// used again.
//
// Actions without a filter or hook to wait at are carried out by fault_effects.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "fabric/faults/fault_clock.hpp"
#include "fabric/faults/frame_actions.hpp"
#include "fabric/faults/frame_fault.hpp"

#include "simverbs/faults/fault_environment.hpp"
#include "simverbs/faults/fault_spec.hpp"
#include "simverbs/hca/injected_fault.hpp"

namespace simverbs {

class FaultBoard final : private DeviceFaults,
                         private PacketEnds,
                         private fabric::PayloadKeeper,
                         private fabric::FiringListener {
  public:
    // The environment outlives the board, and has no other.
    explicit FaultBoard(FaultEnvironment& environment);
    ~FaultBoard();
    FaultBoard(const FaultBoard&) = delete;
    FaultBoard& operator=(const FaultBoard&) = delete;

    // From now on. What the specification names is there; `after` is nothing or a fault of the
    // board.
    fabric::FaultId inject(const FaultSpec& spec);
    [[nodiscard]] bool has(fabric::FaultId id) const { return faults_.contains(id); }
    // False: there is none of that id. What a fault keeps goes on.
    bool clear(fabric::FaultId id);
    void clear_all();
    // Nothing: there is none of that id.
    [[nodiscard]] std::optional<std::uint64_t> fired(fabric::FaultId id) const;
    // How often what it waits for has come while it was armed. The same.
    [[nodiscard]] std::optional<std::uint64_t> matched(fabric::FaultId id) const;
    // Firings of a fault that there was nothing to be done to, and why the last of them had
    // nothing.
    struct Missed {
        std::uint64_t count = 0;
        std::string_view reason{};  // a literal
    };
    // The same.
    [[nodiscard]] std::optional<Missed> missed(fabric::FaultId id) const;
    // Returns true if a fault waits for the next request of that queue of one queue pair.
    [[nodiscard]] bool waits_for(const Hca& hca, std::uint32_t qpn, CompletedQueue queue) const;

  private:
    struct Fault {
        fabric::FaultId id;
        FaultSpec spec;
        fabric::Occasion occasion;  // of what is no frame
        std::unique_ptr<fabric::FrameFault> frames;
        std::vector<fabric::FaultClock::Appointment> appointments;
        Missed missed;
    };
    // Where a fault has come to pass.
    struct Site {
        Hca* hca = nullptr;
        std::uint32_t qpn = 0;
    };
    class FrameTrigger;
    class BranchAction;

    std::optional<InjectedFault> work_request(QueuePair& qp, CompletedQueue queue) override;
    int command(Hca& hca, CommandCode command) override;
    std::uint32_t poll(Hca& hca, std::uint32_t found) override;
    fabric::SimDuration completion(QueuePair& qp, CompletedQueue queue) override;
    fabric::SimDuration completion_event(Hca& hca) override;
    [[nodiscard]] std::optional<Origin> origin(fabric::NodeId node,
                                               std::uint32_t qpn) const override;
    [[nodiscard]] std::optional<fabric::NodeId> destination(
        const fabric::Frame& frame) const override;
    void keep_payload(fabric::Frame& frame) override;
    void fault_fired(fabric::FaultId id) override;

    [[nodiscard]] const fabric::Occasion* occasion_of(fabric::FaultId id) const;
    void start(fabric::FaultId id, Fault& fault);
    void wake(fabric::FaultId id);
    void rouse(fabric::FaultId id);
    void fire_later(fabric::FaultId id, Fault& fault);
    void hook_devices();
    [[nodiscard]] std::unique_ptr<fabric::FrameAction> make_action(fabric::FaultId id,
                                                                   const FaultSpec& spec);
    [[nodiscard]] std::unique_ptr<fabric::FrameAction> make_effect(fabric::FaultId id,
                                                                   const FaultSpec& spec);
    // The faults with that kind of trigger, in the order of their ids.
    template <typename Trigger>
    [[nodiscard]] const std::vector<Fault*>& waiting_for() const {
        return waiting_[FaultTrigger(Trigger()).index()];
    }
    // Returns false if an explored program goes on without the fault here.
    [[nodiscard]] bool acts_here(std::string_view name);
    // In a fork one of them acts, and nobody looks for the others any more.
    void ignore_forking_faults_but(std::string_view acting);
    void fire_on_time(fabric::FaultId id);
    // After what it waits for has come: traced, and done after its delay.
    void fire(fabric::FaultId id, Fault& fault, const Site& site, std::uint64_t nth);
    void act_later(fabric::FaultId id, const Site& site);
    // The faults whose call this is, and which act here.
    std::vector<fabric::FaultId> called(const Hca& hca, CommandCode command);
    // The same of a fault that is done to a completion or an event: how late that is.
    fabric::SimDuration fire_within(fabric::FaultId id, const Site& site);
    void act(fabric::FaultId id, const Site& site);
    [[nodiscard]] FaultTarget target_of(fabric::FaultId id, const Site& site) const;
    void emit(fabric::FaultId id, const Fault& fault, const Site& site, std::uint64_t nth);

    FaultEnvironment& environment_;
    fabric::FaultClock clock_;
    std::map<fabric::FaultId, Fault> faults_;
    // By the fault whose first firing wakes them; in the order of their ids.
    std::multimap<fabric::FaultId, fabric::FaultId> followers_;
    std::array<std::vector<Fault*>, std::variant_size_v<FaultTrigger>> waiting_;
    std::uint32_t last_id_ = 0;
    std::uint64_t commands_ = 0;
};

}  // namespace simverbs
