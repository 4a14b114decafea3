// The part of the control API that puts faults in place and takes them back.
#include "simverbs/abi/control_faults.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "simverbs/abi/export.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {

using driver::EmbeddedWorld;

SIMVERBS_ABI void simverbs_fault_init(struct simverbs_fault* fault) {
    *fault = {};
    fault->size = sizeof *fault;
}

SIMVERBS_ABI int simverbs_inject(const struct simverbs_fault* fault, uint32_t* id) {
    if (fault == nullptr || fault->size == 0) {
        return fail(EINVAL, "simverbs_inject: no fault; simverbs_fault_init() it first");
    }
    simverbs_fault asked{};
    std::memcpy(&asked, fault, std::min(fault->size, sizeof asked));
    return inject("simverbs_inject", asked, id);
}

SIMVERBS_ABI int simverbs_clear_fault(uint32_t fault) {
    return in_turn([=](EmbeddedWorld& world) {
        return world.faults().clear(fabric::FaultId(fault))
                   ? 0
                   : fail(ENOENT, "simverbs_clear_fault: there is no fault {}", fault);
    });
}

SIMVERBS_ABI int simverbs_clear_faults(void) {
    return in_turn([](EmbeddedWorld& world) {
        world.faults().clear_all();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_fault_fired(uint32_t id, uint64_t* count) {
    if (count == nullptr) {
        return fail_without_place("simverbs_fault_fired");
    }
    return in_turn([=](EmbeddedWorld& world) {
        const auto fired = world.faults().fired(fabric::FaultId(id));
        if (!fired) {
            return fail(ENOENT, "simverbs_fault_fired: there is no fault {}", id);
        }
        *count = *fired;
        return 0;
    });
}

SIMVERBS_ABI int simverbs_fault_matched(uint32_t id, uint64_t* count) {
    if (count == nullptr) {
        return fail_without_place("simverbs_fault_matched");
    }
    return in_turn([=](EmbeddedWorld& world) {
        const auto matched = world.faults().matched(fabric::FaultId(id));
        if (!matched) {
            return fail(ENOENT, "simverbs_fault_matched: there is no fault {}", id);
        }
        *count = *matched;
        return 0;
    });
}

SIMVERBS_ABI int simverbs_fault_missed(uint32_t id, uint64_t* count, const char** reason) {
    if (count == nullptr) {
        return fail_without_place("simverbs_fault_missed");
    }
    return in_turn([=](EmbeddedWorld& world) {
        const auto missed = world.faults().missed(fabric::FaultId(id));
        if (!missed) {
            return fail(ENOENT, "simverbs_fault_missed: there is no fault {}", id);
        }
        *count = missed->count;
        if (reason != nullptr) {
            *reason = missed->reason.empty() ? "" : missed->reason.data();
        }
        return 0;
    });
}

SIMVERBS_ABI const char* simverbs_fault_action_str(enum simverbs_fault_action action) {
    const FaultActionRow* row = find_fault_action(number_of(action));
    return row == nullptr ? nullptr : row->name.data();
}

}  // namespace simverbs::abi
