// The faults of a scenario, handed to simverbs_inject().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "scenarios/engine/checked.hpp"
#include "scenarios/engine/world.hpp"

namespace scenarios {

class Faults {
  public:
    explicit Faults(World& world) : world_(world) {}

    // Why it could not be; "" where it is in place.
    [[nodiscard]] std::string inject(Checked fault);
    [[nodiscard]] std::string inject_all(const Scenario& scenario);
    void clear(const std::string& name);
    [[nodiscard]] std::uint64_t fired(const std::string& name) const;
    // By the number that the trace has.
    [[nodiscard]] std::string name_of(std::uint64_t id) const;

  private:
    std::string fill_when(Checked when, simverbs_fault& fault);
    std::string fill_target(Checked body, simverbs_fault& fault);

    World& world_;
    std::map<std::string, std::uint32_t, std::less<>> ids_;
    std::uint32_t unnamed_ = 0;
};

}  // namespace scenarios
