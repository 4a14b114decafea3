// The frequent faults in a call each: every one is a struct simverbs_fault that is injected as
// simverbs_inject() does. What a call refuses beyond that is checked here.
#include <cerrno>
#include <variant>

#include "simverbs/abi/control_faults.hpp"
#include "simverbs/abi/export.hpp"
#include "simverbs/faults/fault_members.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/hca/shared_receive_queue.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

using driver::EmbeddedWorld;

// On frames that `from_node` sends over `link`. Both have to be named: in a simverbs_fault, NULL is
// any.
int inject_on_link(const char* function, const char* link, const char* from_node,
                   simverbs_fault& fault, std::uint32_t* id) {
    if (!is_given(link) || !is_given(from_node)) {
        return fail(ENOENT, "{}: {} is missing", function, is_given(link) ? "from_node" : "link");
    }
    fault.match.link = link;
    fault.match.transmitter = from_node;
    return inject(function, fault, id);
}

// On the next request of a work queue; at most one such fault waits for a queue.
int fail_next(const char* function, const char* node, std::uint32_t qp_num, simverbs_fault& fault,
              std::uint32_t* id) {
    if (!is_given(node) || qp_num == 0) {
        return fail(ENOENT, "{}: {} is missing", function, is_given(node) ? "qp_num" : "node");
    }
    fault.match.node = node;
    fault.match.qp_num = qp_num;
    return inject(function, fault, id, [&](EmbeddedWorld& world, const FaultSpec& spec) {
        const auto& on = std::get<OnWorkRequest>(spec.on);
        return world.faults().waits_for(*on.hca, qp_num, on.queue)
                   ? fail(EBUSY,
                          "{}: a fault waits for that queue already; simverbs_clear_fault() it, or "
                          "post a request for it first",
                          function)
                   : 0;
    });
}

simverbs_fault fault_of(simverbs_fault_action action) {
    simverbs_fault fault;
    simverbs_fault_init(&fault);
    fault.action = action;
    return fault;
}

}  // namespace

SIMVERBS_ABI int simverbs_drop_nth(const char* link, const char* from_node, uint64_t nth,
                                   uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_drop_nth: frames are counted from 1");
    }
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_DROP);
    asked.nth = nth;
    return inject_on_link("simverbs_drop_nth", link, from_node, asked, fault);
}

SIMVERBS_ABI int simverbs_drop_all(const char* link, const char* from_node, uint32_t* fault) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_DROP);
    asked.count = SIMVERBS_EVERY;
    return inject_on_link("simverbs_drop_all", link, from_node, asked, fault);
}

SIMVERBS_ABI int simverbs_rewrite_nth(const char* link, const char* from_node, uint64_t nth,
                                      uint8_t opcode, uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_rewrite_nth: frames are counted from 1");
    }
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_REWRITE);
    asked.nth = nth;
    asked.with.field = SIMVERBS_HEADER_OPCODE;
    asked.with.value = opcode;
    return inject_on_link("simverbs_rewrite_nth", link, from_node, asked, fault);
}

SIMVERBS_ABI int simverbs_fault_execution(const char* node, uint32_t qp_num, uint32_t* fault) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_EXECUTION);
    return fail_next("simverbs_fault_execution", node, qp_num, asked, fault);
}

SIMVERBS_ABI int simverbs_fault_syndrome(const char* node, uint32_t qp_num, uint32_t* fault) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_SYNDROME);
    return fail_next("simverbs_fault_syndrome", node, qp_num, asked, fault);
}

SIMVERBS_ABI int simverbs_fault_completion(const char* node, uint32_t qp_num, simverbs_queue queue,
                                           int status, uint32_t* fault) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_COMPLETION);
    asked.match.queue = queue;
    asked.with.value = static_cast<std::uint64_t>(status);
    return fail_next("simverbs_fault_completion", node, qp_num, asked, fault);
}

SIMVERBS_ABI int simverbs_fault_ring(const char* node, uint32_t qp_num, simverbs_queue queue) {
    if (qp_num == 0) {
        return fail(ENOENT, "simverbs_fault_ring: qp_num is missing");
    }
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_RING);
    asked.target.node = node;
    asked.target.qp_num = qp_num;
    asked.target.queue = queue;
    return inject(
        "simverbs_fault_ring", asked, nullptr,
        [qp_num](EmbeddedWorld& /*world*/, const FaultSpec& spec) {
            const QpState state = spec.target.qp.find(*spec.target.hca)->attributes().state;
            return state == QpState::kErr || state == QpState::kReset
                       ? fail(EINVAL,
                              "simverbs_fault_ring: queue pair {:#x} is in {}, where no ring is "
                              "read; take it to INIT or further",
                              qp_num, to_string(state))
                       : 0;
        });
}

SIMVERBS_ABI int simverbs_fault_srq_ring(const char* node, uint32_t srq_handle) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_SRQ_RING);
    asked.target.node = node;
    asked.target.object = srq_handle;
    return inject("simverbs_fault_srq_ring", asked, nullptr,
                  [srq_handle](EmbeddedWorld& /*world*/, const FaultSpec& spec) {
                      return spec.target.hca->srqs().find(srq_handle) == nullptr
                                 ? fail(ENOENT,
                                        "simverbs_fault_srq_ring: {} has no shared receive queue "
                                        "{:#x}; ibv_srq.handle is the number to give",
                                        spec.target.hca->name(), srq_handle)
                                 : 0;
                  });
}

SIMVERBS_ABI int simverbs_fault_device(const char* node) {
    simverbs_fault asked = fault_of(SIMVERBS_FAULT_DEVICE_FATAL);
    asked.target.node = node;
    return inject("simverbs_fault_device", asked, nullptr,
                  [node](EmbeddedWorld& /*world*/, const FaultSpec& spec) {
                      return spec.target.hca->is_dead()
                                 ? fail(EINVAL,
                                        "simverbs_fault_device: the device of {} is dead already",
                                        node)
                                 : 0;
                  });
}

}  // namespace simverbs::abi
