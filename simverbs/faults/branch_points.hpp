// Asks, where a fault of an explored program would act, whether it is to act here.
#pragma once

#include <cstdint>
#include <string_view>

#include "simverbs/model/branch_report.hpp"

namespace simverbs {

class BranchPoints {
  public:
    // Returns true if the fault acts in this process. Perhaps it forks, and returns once in each
    // process. With the world held. The program has not run since a call with the same `moment`.
    [[nodiscard]] virtual bool acts_here(std::string_view fault, std::uint64_t moment) = 0;

    // Returns true if they are asked about the fault of that name.
    [[nodiscard]] static bool are_asked(std::string_view fault) {
        return fault.starts_with(kForkingFault) || fault.starts_with(kReportedFault);
    }

  protected:
    ~BranchPoints() = default;
};

}  // namespace simverbs
