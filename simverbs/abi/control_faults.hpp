// The one way in which the control API puts a fault in place.
#pragma once

#include <cstdint>

#include "simverbs/abi/control.hpp"
#include "simverbs/faults/fault_request.hpp"

namespace simverbs::abi {

struct RefusesNothing {
    int operator()(driver::EmbeddedWorld& /*world*/, const FaultSpec& /*spec*/) const { return 0; }
};

// Injects a fault in the caller's turn; *id (may be nullptr) takes its number. An error names
// `function`. `check` sees the fault after its names have been looked up; what it returns, unless
// 0, is the answer.
template <class Check = RefusesNothing>
int inject(const char* function, const simverbs_fault& asked, std::uint32_t* id,
           Check&& check = {}) {
    return in_turn([&](driver::EmbeddedWorld& world) {
        FaultRequest request(world.simulation(), world.faults(), asked);
        if (const int error = request.read(); error != 0) {
            return fail(error, "{}: {}", function, request.why());
        }
        if (const int error = check(world, request.spec()); error != 0) {
            return error;
        }
        const fabric::FaultId fault = world.faults().inject(request.spec());
        if (id != nullptr) {
            *id = fault.value();
        }
        return 0;
    });
}

}  // namespace simverbs::abi
