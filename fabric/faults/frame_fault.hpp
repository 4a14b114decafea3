// A fault of frames: a filter on some link directions that asks a matcher whom it is meant for, an
// occasion whether it happens, and has an action do it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "fabric/faults/fault_events.hpp"
#include "fabric/faults/frame_matcher.hpp"
#include "fabric/faults/occasion.hpp"
#include "fabric/net/link.hpp"
#include "fabric/trace/bus.hpp"

namespace fabric {

// An action on a frame.
class FrameAction {
  public:
    FrameAction(const FrameAction&) = delete;
    FrameAction& operator=(const FrameAction&) = delete;
    virtual ~FrameAction() = default;

    // As the trace calls it.
    [[nodiscard]] virtual std::string_view name() const = 0;
    // Returns true if it can be done to this frame at all.
    [[nodiscard]] virtual bool applies(const Frame& /*frame*/) const { return true; }
    virtual Verdict act(Frame& frame, const LinkDirection& direction) = 0;
    // Fills in the object that it changes, where that is not the frame.
    virtual void describe_target(FaultFired& /*event*/) const {}
    // A frame that was not hit passes.
    virtual Verdict pass(Frame& /*frame*/, const LinkDirection& /*direction*/) {
        return Verdict::kPass;
    }
    // Lets go on what it keeps.
    virtual void release() {}

  protected:
    FrameAction() = default;
};

// Hears of every firing, after it was traced and before anything is done.
class FiringListener {
  public:
    virtual void fault_fired(FaultId fault) = 0;

  protected:
    ~FiringListener() = default;
};

// In place for as long as it lives; what its action keeps then is lost.
class FrameFault final : public LinkFilter {
  public:
    // `listener` may be nullptr. Directions and bus outlive the fault.
    FrameFault(trace::Bus& bus, FaultId id, std::unique_ptr<FrameMatcher> matcher,
               const OccasionRules& rules, std::unique_ptr<FrameAction> action,
               std::vector<LinkDirection*> directions, FiringListener* listener = nullptr);
    ~FrameFault();
    FrameFault(const FrameFault&) = delete;
    FrameFault& operator=(const FrameFault&) = delete;

    // From now on no frame comes to it. Not while a direction asks its filters.
    void withdraw();

    [[nodiscard]] Occasion& occasion() { return occasion_; }
    [[nodiscard]] FrameAction& action() { return *action_; }

    Verdict inspect(SimTime now, Frame& frame, const LinkDirection& direction) override;

  private:
    trace::Bus& bus_;
    FaultId id_;
    std::unique_ptr<FrameMatcher> matcher_;
    Occasion occasion_;
    std::unique_ptr<FrameAction> action_;
    std::vector<LinkDirection*> directions_;
    FiringListener* listener_;
};

}  // namespace fabric
