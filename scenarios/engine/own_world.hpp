// The world of this process, through <simverbs/simverbs.h>.
#pragma once

#include <cstdint>
#include <string>

#include "simverbs/simverbs.h"

#include "scenarios/engine/faults.hpp"
#include "scenarios/engine/observation.hpp"

namespace scenarios {

class OwnWorld : public FaultSink {
  public:
    std::string inject(const simverbs_fault& fault, std::uint32_t& id) override {
        return simverbs_inject(&fault, &id) == 0 ? "" : simverbs_last_error();
    }
    [[nodiscard]] std::optional<std::uint64_t> matched(std::uint32_t id) const override {
        std::uint64_t count = 0;
        return simverbs_fault_matched(id, &count) == 0 ? std::optional(count) : std::nullopt;
    }
    void clear(std::uint32_t id) override { simverbs_clear_fault(id); }
};

// Passes the world's settings that `run:` of a scenario has to simverbs_set(). False: one of them
// was refused; simverbs_last_error() says why.
bool apply_settings(Checked run);

Record record_of(const simverbs_record& record);

}  // namespace scenarios
