// The faults of a scenario, handed to whoever has the world: simverbs_inject(), or a server.
#pragma once

#include <cstdint>
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
    // By the number that the trace has.
    [[nodiscard]] std::string name_of(std::uint64_t id) const;

  private:
    std::string fill_when(Checked when, simverbs_fault& fault);
    std::string fill_target(Checked body, simverbs_fault& fault);
    static std::string fill_arguments(Checked body, simverbs_fault_arguments& with);

    const Observed& run_;
    FaultSink& sink_;
    std::map<std::string, std::uint32_t, std::less<>> ids_;
    std::uint32_t unnamed_ = 0;
};

}  // namespace scenarios
