// The part of the control API that makes things go wrong: links, packets, devices.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "simverbs/abi/control.hpp"
#include "simverbs/abi/control_names.hpp"
#include "simverbs/abi/export.hpp"
#include "simverbs/faults/fault_request.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

using driver::EmbeddedWorld;

std::optional<CompletedQueue> queue_of(const char* function, simverbs_queue queue) {
    switch (queue) {
        case SIMVERBS_SEND_QUEUE:
            return CompletedQueue::kSend;
        case SIMVERBS_RECEIVE_QUEUE:
            return CompletedQueue::kReceive;
    }
    fail(EINVAL, "{}: {} is no queue; SIMVERBS_SEND_QUEUE or SIMVERBS_RECEIVE_QUEUE", function,
         static_cast<int>(queue));
    return std::nullopt;
}

int inject(EmbeddedWorld& world, const FaultSpec& spec, std::uint32_t* fault) {
    const fabric::FaultId id = world.faults().inject(spec);
    if (fault != nullptr) {
        *fault = id.value();
    }
    return 0;
}

// Of the frames that `from_node` sends over `link`.
int inject_on_link(const char* function, const char* link, const char* from_node,
                   const FaultSpec& what, std::uint32_t* fault) {
    return in_turn([&](EmbeddedWorld& world) {
        fabric::Link* found = find_link(world, function, link);
        fabric::LinkDirection* direction =
            found == nullptr ? nullptr : find_direction(*found, function, from_node);
        if (direction == nullptr) {
            return ENOENT;
        }
        FaultSpec spec = what;
        spec.on = OnPacket{{direction}, {}};
        return inject(world, spec, fault);
    });
}

int fail_next(const char* function, const char* node, std::uint32_t qp_num, CompletedQueue queue,
              simverbs_fault_action action, int status, std::uint32_t* fault) {
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, function, node);
        if (hca == nullptr || find_queue_pair(*hca, function, qp_num) == nullptr) {
            return ENOENT;
        }
        if (world.faults().waits_for(*hca, qp_num, queue)) {
            return fail(EBUSY,
                        "{}: a fault waits for that queue already; simverbs_clear_fault() it, or "
                        "post a request for it first",
                        function);
        }
        FaultSpec spec{.action = action, .on = OnWorkRequest{hca, {.qpn = qp_num}, queue}};
        spec.with.value = static_cast<std::uint64_t>(status);
        return inject(world, spec, fault);
    });
}

}  // namespace

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
    return in_turn([&asked, id](EmbeddedWorld& world) {
        FaultRequest request(world.simulation(), world.faults(), asked);
        const int error = request.read();
        return error != 0 ? fail(error, "simverbs_inject: {}", request.why())
                          : inject(world, request.spec(), id);
    });
}

SIMVERBS_ABI int simverbs_clear_faults(void) {
    return in_turn([](EmbeddedWorld& world) {
        world.faults().clear_all();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_fault_fired(uint32_t id, uint64_t* count) {
    return in_turn([=](EmbeddedWorld& world) {
        const auto fired = world.faults().fired(fabric::FaultId(id));
        if (!fired) {
            return fail(ENOENT, "simverbs_fault_fired: there is no fault {}", id);
        }
        *count = *fired;
        return 0;
    });
}

SIMVERBS_ABI const char* simverbs_fault_action_str(enum simverbs_fault_action action) {
    const FaultActionRow* row = find_fault_action(number_of(action));
    return row == nullptr ? nullptr : row->name.data();
}

SIMVERBS_ABI int simverbs_drop_nth(const char* link, const char* from_node, uint64_t nth,
                                   uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_drop_nth: frames are counted from 1");
    }
    FaultSpec spec{.action = SIMVERBS_FAULT_DROP};
    spec.when.nth = nth;
    return inject_on_link("simverbs_drop_nth", link, from_node, spec, fault);
}

SIMVERBS_ABI int simverbs_drop_all(const char* link, const char* from_node, uint32_t* fault) {
    FaultSpec spec{.action = SIMVERBS_FAULT_DROP};
    spec.when.count = fabric::kEveryTime;
    return inject_on_link("simverbs_drop_all", link, from_node, spec, fault);
}

SIMVERBS_ABI int simverbs_clear_fault(uint32_t fault) {
    return in_turn([=](EmbeddedWorld& world) {
        return world.faults().clear(fabric::FaultId(fault))
                   ? 0
                   : fail(ENOENT, "simverbs_clear_fault: there is no fault {}", fault);
    });
}

SIMVERBS_ABI int simverbs_set_link(const char* link, int up) {
    return in_turn([=](EmbeddedWorld& world) {
        fabric::Link* found = find_link(world, "simverbs_set_link", link);
        if (found == nullptr) {
            return ENOENT;
        }
        const auto wanted = up != 0 ? fabric::LinkState::kUp : fabric::LinkState::kDown;
        if (found->state() != wanted) {
            found->set_state(wanted);
        }
        return 0;
    });
}

SIMVERBS_ABI int simverbs_rewrite_nth(const char* link, const char* from_node, uint64_t nth,
                                      uint8_t opcode, uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_rewrite_nth: frames are counted from 1");
    }
    if (!wire_opcode(opcode).known) {
        return fail(EINVAL,
                    "simverbs_rewrite_nth: {:#04x} is no opcode of a base transport header; 0x11 "
                    "is an acknowledgement of a reliable connection, 0x10 a whole READ response",
                    opcode);
    }
    FaultSpec spec{.action = SIMVERBS_FAULT_REWRITE};
    spec.when.nth = nth;
    spec.with.field = SIMVERBS_HEADER_OPCODE;
    spec.with.value = opcode;
    return inject_on_link("simverbs_rewrite_nth", link, from_node, spec, fault);
}

SIMVERBS_ABI int simverbs_fault_execution(const char* node, uint32_t qp_num, uint32_t* fault) {
    return fail_next("simverbs_fault_execution", node, qp_num, CompletedQueue::kSend,
                     SIMVERBS_FAULT_EXECUTION, 0, fault);
}

SIMVERBS_ABI int simverbs_fault_syndrome(const char* node, uint32_t qp_num, uint32_t* fault) {
    return fail_next("simverbs_fault_syndrome", node, qp_num, CompletedQueue::kSend,
                     SIMVERBS_FAULT_SYNDROME, 0, fault);
}

SIMVERBS_ABI int simverbs_fault_completion(const char* node, uint32_t qp_num, simverbs_queue queue,
                                           int status, uint32_t* fault) {
    const auto which = queue_of("simverbs_fault_completion", queue);
    if (!which) {
        return EINVAL;
    }
    if (status <= 0 || status >= static_cast<int>(kWcStatuses)) {
        return fail(EINVAL,
                    "simverbs_fault_completion: {} is no status of a failure; from 1 ({}) to {} "
                    "({})",
                    status, to_string(WcStatus::kLocLenErr), kWcStatuses - 1,
                    to_string(WcStatus::kTmRndvIncomplete));
    }
    return fail_next("simverbs_fault_completion", node, qp_num, *which, SIMVERBS_FAULT_COMPLETION,
                     status, fault);
}

SIMVERBS_ABI int simverbs_fault_ring(const char* node, uint32_t qp_num, simverbs_queue queue) {
    const auto which = queue_of("simverbs_fault_ring", queue);
    if (!which) {
        return EINVAL;
    }
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, "simverbs_fault_ring", node);
        simverbs::QueuePair* qp =
            hca == nullptr ? nullptr : find_queue_pair(*hca, "simverbs_fault_ring", qp_num);
        if (qp == nullptr) {
            return ENOENT;
        }
        const QpAttributes& attributes = qp->attributes();
        if (attributes.state == QpState::kErr || attributes.state == QpState::kReset) {
            return fail(EINVAL,
                        "simverbs_fault_ring: queue pair {:#x} is in {}, where no ring is read; "
                        "take it to INIT or further",
                        qp_num, to_string(attributes.state));
        }
        FaultSpec spec{.action = SIMVERBS_FAULT_RING};
        spec.target.hca = hca;
        spec.target.qp = {.qpn = qp_num};
        spec.target.queue = *which;
        return inject(world, spec, nullptr);
    });
}

SIMVERBS_ABI int simverbs_fault_srq_ring(const char* node, uint32_t srq_handle) {
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, "simverbs_fault_srq_ring", node);
        if (hca == nullptr) {
            return ENOENT;
        }
        if (hca->srqs().find(srq_handle) == nullptr) {
            return fail(ENOENT,
                        "simverbs_fault_srq_ring: {} has no shared receive queue {:#x}; "
                        "ibv_srq.handle is the number to give",
                        hca->name(), srq_handle);
        }
        FaultSpec spec{.action = SIMVERBS_FAULT_SRQ_RING};
        spec.target.hca = hca;
        spec.target.object = srq_handle;
        return inject(world, spec, nullptr);
    });
}

SIMVERBS_ABI int simverbs_fault_device(const char* node) {
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, "simverbs_fault_device", node);
        if (hca == nullptr) {
            return ENOENT;
        }
        if (hca->is_dead()) {
            return fail(EINVAL, "simverbs_fault_device: the device of {} is dead already", node);
        }
        FaultSpec spec{.action = SIMVERBS_FAULT_DEVICE_FATAL};
        spec.target.hca = hca;
        spec.target.node = &world.simulation().network().node(hca->node());
        return inject(world, spec, nullptr);
    });
}

}  // namespace simverbs::abi
