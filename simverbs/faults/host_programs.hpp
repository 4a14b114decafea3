// The programs of the hosts of a world, as faults stop and end them: for how long, what of it goes
// into the trace, and who does it, which depends on where the programs are.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fabric/core/sim_time.hpp"
#include "fabric/core/strong_id.hpp"
#include "fabric/faults/fault_clock.hpp"
#include "fabric/trace/event_info.hpp"

#include "simverbs/faults/fault_environment.hpp"

namespace simverbs {

enum class ProgramsChange : std::uint8_t { kStopped, kWentOn, kEnded };
constexpr std::string_view to_string(ProgramsChange change) {
    switch (change) {
        case ProgramsChange::kStopped:
            return "stopped";
        case ProgramsChange::kWentOn:
            return "went on";
        case ProgramsChange::kEnded:
            break;
    }
    return "ended";
}

// The programs of a host were stopped, went on or ended; the node is its first device.
struct ProgramsChanged {
    static constexpr fabric::trace::EventInfo kInfo{"programs", fabric::trace::Category::kState};
    fabric::NodeId node;
    std::string_view host;
    ProgramsChange change;

    template <class F>
    void fields(F&& f) const {
        f("host", host);
        f("change", change);
    }
};

class HostPrograms {
  public:
    explicit HostPrograms(FaultEnvironment& environment) : environment_(environment) {}
    HostPrograms(const HostPrograms&) = delete;
    HostPrograms& operator=(const HostPrograms&) = delete;

    // Until `duration` has passed, or a longer stop that is under way is over; `later` ends it.
    // Returns why that cannot be, "" where it is so.
    std::string_view stop(const std::string& host, fabric::SimDuration duration,
                          fabric::FaultClock& later);
    // They are no more from this instant on; `why` tells who asks. The same.
    std::string_view kill(const std::string& host, const std::string& why);

    // Returns true if their posts and polls can ask for faults.
    [[nodiscard]] virtual bool can_ask_when_working() const { return false; }
    // From now on they ask before each post, or no more; and before each poll that finds something.
    virtual void ask_when_working(bool /*posting*/, bool /*polling*/) {}

  protected:
    ~HostPrograms() = default;

    // In the midst of an event. `resume` follows each `halt` that answered "".
    virtual std::string_view halt(const std::string& host) = 0;
    virtual void resume(const std::string& host) = 0;
    virtual std::string_view end(const std::string& host, const std::string& why) = 0;

  private:
    void tell(const std::string& host, ProgramsChange change);

    FaultEnvironment& environment_;
    std::map<std::string, fabric::SimTime> stopped_until_;
};

}  // namespace simverbs
