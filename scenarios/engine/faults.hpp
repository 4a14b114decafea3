// The faults of a scenario, handed to whoever has the world: simverbs_inject(), or a server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/simverbs.h"

#include "scenarios/engine/checked.hpp"
#include "scenarios/engine/observed.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

// Where faults go.
class FaultSink {
  public:
    virtual ~FaultSink() = default;
    // Why it could not be put in place; "" and its number where it is.
    virtual std::string inject(const simverbs_fault& fault, std::uint32_t& id) = 0;
    // How often what it waits for has come; nothing: it was taken back.
    [[nodiscard]] virtual std::optional<std::uint64_t> matched(std::uint32_t id) const = 0;
    virtual void clear(std::uint32_t id) = 0;
};

class Faults {
  public:
    // Both outlive the faults.
    Faults(const Observed& run, FaultSink& sink) : run_(run), sink_(sink) {}

    // Why it could not be; "" where it is in place.
    [[nodiscard]] std::string inject(Checked fault);
    [[nodiscard]] std::string inject_all(const Scenario& scenario);
    void clear(const std::string& name);
    [[nodiscard]] std::uint64_t fired(const std::string& name) const;
    // Which of its matches each fault has hit, by the name of the fault.
    [[nodiscard]] std::map<std::string, std::vector<std::uint64_t>> firings() const;
    // The packets that they were, in the same order.
    [[nodiscard]] std::map<std::string, std::vector<PacketHit>> packets_hit() const;
    // Their virtual times, in the same order.
    [[nodiscard]] std::map<std::string, std::vector<std::int64_t>> times_of_firings() const;
    // How often what faults wait for has come, over all of them.
    [[nodiscard]] std::uint64_t matched() const;
    // Some fault may still act as time goes on, whatever happens on the wire.
    [[nodiscard]] bool may_act_later() const;
    // Why the fault of that name never fired, in words; "" where that is not known.
    [[nodiscard]] std::string why_never_fired(const std::string& name) const;

  private:
    // A fault that is in place.
    struct Placed {
        std::uint32_t id;
        simverbs_fault_trigger on;
        Checked body;  // lives as long as the scenario
    };

    std::string fill_when(Checked when, simverbs_fault& fault) const;
    std::string fill_match(Checked when, simverbs_fault& fault) const;
    std::string fill_target(Checked body, simverbs_fault& fault);
    // When the fault last fired, picoseconds; nothing: never.
    [[nodiscard]] std::optional<std::int64_t> last_firing(std::uint32_t id) const;
    [[nodiscard]] PacketHit packet_of(const Record& fired) const;
    // Returns what `of` makes of each firing, by the name of the fault.
    template <class T>
    [[nodiscard]] std::map<std::string, std::vector<T>> of_firings(
        const std::function<T(const Record&)>& of) const;
    static std::string fill_arguments(Checked body, simverbs_fault_arguments& with);

    const Observed& run_;
    FaultSink& sink_;
    std::map<std::string, Placed, std::less<>> placed_;
    std::uint32_t unnamed_ = 0;
};

}  // namespace scenarios
