// The part of the control API that makes things go wrong: links, packets, devices.
#include <cerrno>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "fabric/faults/fault_events.hpp"

#include "simverbs/abi/control.hpp"
#include "simverbs/abi/export.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wire_opcodes.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

using driver::EmbeddedWorld;

std::string names_of_links(const fabric::Network& network) {
    constexpr std::size_t kMost = 8;
    std::string names;
    for (std::size_t i = 0; i < network.link_count() && i < kMost; ++i) {
        names += (i == 0 ? "" : ", ") + network.link(i).name();
    }
    return network.link_count() > kMost ? names + ", ..." : names;
}

fabric::Link* find_link(EmbeddedWorld& world, const char* function, const char* name) {
    const fabric::Network& network = world.simulation().network();
    fabric::Link* link = name == nullptr ? nullptr : network.find_link(name);
    if (link == nullptr) {
        fail(ENOENT, "{}: there is no link '{}'; topology '{}' has {}", function,
             name == nullptr ? "" : name, world.simulation().options().topology,
             names_of_links(network));
    }
    return link;
}

fabric::LinkDirection* find_direction(EmbeddedWorld& world, const char* function, const char* name,
                                      const char* from_node) {
    fabric::Link* link = find_link(world, function, name);
    if (link == nullptr) {
        return nullptr;
    }
    for (const std::size_t which : {0U, 1U}) {
        fabric::Port& port = link->end(which);
        if (from_node != nullptr && port.node().name() == from_node) {
            return &link->direction_from(port);
        }
    }
    fail(ENOENT, "{}: '{}' is no end of link '{}'; its ends are {} and {}", function,
         from_node == nullptr ? "" : from_node, link->name(), link->end(0).node().name(),
         link->end(1).node().name());
    return nullptr;
}

Hca* find_device(EmbeddedWorld& world, const char* function, const char* node) {
    Hca* hca = node == nullptr ? nullptr : world.simulation().find_hca(node);
    if (hca == nullptr) {
        const fabric::Network& network = world.simulation().network();
        fail(ENOENT, "{}: there is no host '{}'; topology '{}' has {} to {}", function,
             node == nullptr ? "" : node, world.simulation().options().topology,
             network.host(0).name(), network.host(network.host_count() - 1).name());
    }
    return hca;
}

simverbs::QueuePair* find_queue_pair(Hca& hca, const char* function, std::uint32_t qp_num) {
    simverbs::QueuePair* qp = hca.qps().find(qp_num);
    if (qp == nullptr) {
        fail(ENOENT, "{}: {} has no queue pair {:#x}; ibv_qp.qp_num is the number to give",
             function, hca.name(), qp_num);
    }
    return qp;
}

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

int give_id(fabric::FaultId id, std::uint32_t* fault) {
    if (fault != nullptr) {
        *fault = id.value();
    }
    return 0;
}

int fail_next(const char* function, const char* node, std::uint32_t qp_num, CompletedQueue queue,
              WcStatus status, FaultCause cause, std::uint32_t* fault) {
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, function, node);
        simverbs::QueuePair* qp =
            hca == nullptr ? nullptr : find_queue_pair(*hca, function, qp_num);
        if (qp == nullptr) {
            return ENOENT;
        }
        const auto id = world.faults().fail_next(*hca, *qp, queue, status, cause);
        return id ? give_id(*id, fault)
                  : fail(EBUSY,
                         "{}: a fault waits for that queue already; simverbs_clear_fault() it, or "
                         "post a request for it first",
                         function);
    });
}

}  // namespace

SIMVERBS_ABI int simverbs_drop_nth(const char* link, const char* from_node, uint64_t nth,
                                   uint32_t* fault) {
    if (nth == 0) {
        return fail(EINVAL, "simverbs_drop_nth: frames are counted from 1");
    }
    return in_turn([=](EmbeddedWorld& world) {
        auto* direction = find_direction(world, "simverbs_drop_nth", link, from_node);
        if (direction == nullptr) {
            return ENOENT;
        }
        const fabric::FaultId id = world.faults().drop_nth(*direction, nth);
        return give_id(id, fault);
    });
}

SIMVERBS_ABI int simverbs_drop_all(const char* link, const char* from_node, uint32_t* fault) {
    return in_turn([=](EmbeddedWorld& world) {
        auto* direction = find_direction(world, "simverbs_drop_all", link, from_node);
        if (direction == nullptr) {
            return ENOENT;
        }
        const fabric::FaultId id = world.faults().drop_all(*direction);
        return give_id(id, fault);
    });
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
    return in_turn([=](EmbeddedWorld& world) {
        auto* direction = find_direction(world, "simverbs_rewrite_nth", link, from_node);
        return direction == nullptr
                   ? ENOENT
                   : give_id(world.faults().rewrite_nth(*direction, nth, opcode), fault);
    });
}

SIMVERBS_ABI int simverbs_fault_execution(const char* node, uint32_t qp_num, uint32_t* fault) {
    return fail_next("simverbs_fault_execution", node, qp_num, CompletedQueue::kSend,
                     WcStatus::kFatalErr, FaultCause::kExecutionFault, fault);
}

SIMVERBS_ABI int simverbs_fault_syndrome(const char* node, uint32_t qp_num, uint32_t* fault) {
    return fail_next("simverbs_fault_syndrome", node, qp_num, CompletedQueue::kSend,
                     WcStatus::kGeneralErr, FaultCause::kUnknownSyndrome, fault);
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
    return fail_next("simverbs_fault_completion", node, qp_num, *which,
                     static_cast<WcStatus>(status), FaultCause::kInjectedStatus, fault);
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
        return world.faults().break_ring(*hca, *qp, *which)
                   ? 0
                   : fail(EINVAL,
                          "simverbs_fault_ring: queue pair {:#x} is in {}, where no ring is read; "
                          "take it to INIT or further",
                          qp_num, to_string(qp->attributes().state));
    });
}

SIMVERBS_ABI int simverbs_fault_srq_ring(const char* node, uint32_t srq_handle) {
    return in_turn([=](EmbeddedWorld& world) {
        Hca* hca = find_device(world, "simverbs_fault_srq_ring", node);
        if (hca == nullptr) {
            return ENOENT;
        }
        simverbs::SharedReceiveQueue* srq = hca->srqs().find(srq_handle);
        if (srq == nullptr) {
            return fail(ENOENT,
                        "simverbs_fault_srq_ring: {} has no shared receive queue {:#x}; "
                        "ibv_srq.handle is the number to give",
                        hca->name(), srq_handle);
        }
        world.faults().break_ring(*hca, *srq);
        return 0;
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
        world.faults().kill(*hca);
        return 0;
    });
}

}  // namespace simverbs::abi
