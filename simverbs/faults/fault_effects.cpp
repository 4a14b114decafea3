#include "simverbs/faults/fault_effects.hpp"

#include "simverbs/faults/host_programs.hpp"
#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/hca/shared_receive_queue.hpp"

namespace simverbs {
namespace {

using fabric::FaultClock;
using fabric::LinkState;
using fabric::SimDuration;

constexpr std::string_view kDone;

// Calls act(link) for every link of a node.
template <class F>
void for_each_link(const fabric::Node& node, F&& act) {
    for (std::uint16_t number = 1; number <= node.port_count(); ++number) {
        if (fabric::Link* link = node.port(fabric::PortNumber{number}).link(); link != nullptr) {
            act(*link);
        }
    }
}

void set_links(const fabric::Node& node, LinkState state) {
    for_each_link(node, [state](fabric::Link& link) { link.set_state(state); });
}

// After `duration`, unless it is zero.
template <class F>
void afterwards(FaultClock& later, SimDuration duration, F&& act) {
    if (duration > SimDuration::zero()) {
        later.after(duration, std::forward<F>(act));
    }
}

// Down for `duration`, up for `interval`, `times` times.
void flap(FaultClock& later, fabric::Link& link, const FaultArguments& with) {
    link.set_state(LinkState::kDown);
    later.after(with.duration, [&later, &link, with] {
        link.set_state(LinkState::kUp);
        FaultArguments rest = with;
        if (--rest.times > 0) {
            later.after(with.interval, [&later, &link, rest] { flap(later, link, rest); });
        }
    });
}

void hold(fabric::Port& port, fabric::PhysicalState state) {
    port.mutable_attributes().held = state;
    port.link()->refresh();
}

std::string_view on_link(const FaultSpec& spec, const FaultTarget& target, FaultClock& later) {
    fabric::Link& link = *target.link;
    switch (spec.action) {
        case SIMVERBS_FAULT_LINK_DOWN:
            link.set_state(LinkState::kDown);
            afterwards(later, spec.with.duration, [&link] { link.set_state(LinkState::kUp); });
            return kDone;
        case SIMVERBS_FAULT_LINK_UP:
            link.set_state(LinkState::kUp);
            return kDone;
        case SIMVERBS_FAULT_LINK_FLAP:
            flap(later, link, spec.with);
            return kDone;
        default:
            link.set_rate(spec.with.width, spec.with.speed);
            return kDone;
    }
}

std::string_view on_port(const FaultSpec& spec, fabric::Port& port, FaultEnvironment& environment,
                         FaultClock& later) {
    if (spec.action == SIMVERBS_FAULT_PORT_ERROR) {
        hold(port, fabric::PhysicalState::kPolling);
        afterwards(later, spec.with.duration,
                   [&port] { hold(port, fabric::PhysicalState::kLinkUp); });
        return kDone;
    }
    fabric::PortAdministration* administration = environment.subnet_manager();
    if (administration == nullptr) {
        return "the subnet manager is gone";
    }
    const auto value = static_cast<std::uint16_t>(spec.with.value);
    switch (spec.action) {
        case SIMVERBS_FAULT_LID:
            return administration->set_lid(port, fabric::Lid{value}) ? kDone : "the LID is taken";
        case SIMVERBS_FAULT_PKEY: {
            std::vector<std::uint16_t> pkeys = port.attributes().pkeys;
            pkeys.resize(std::max<std::size_t>(pkeys.size(), spec.with.offset + 1U));
            pkeys[spec.with.offset] = value;
            administration->set_pkeys(port, std::move(pkeys));
            return kDone;
        }
        case SIMVERBS_FAULT_SM_LID:
            administration->set_sm_lid(port, fabric::Lid{value});
            return kDone;
        default:
            administration->ask_to_reregister(port);
            return kDone;
    }
}

void restart(Hca& hca, const fabric::Node& node) {
    hca.restart();
    set_links(node, LinkState::kUp);
}

std::string_view on_device(const FaultSpec& spec, Hca& hca, const fabric::Node& node,
                           FaultClock& later) {
    const bool comes_back =
        spec.action == SIMVERBS_FAULT_HOST_RESTART || spec.action == SIMVERBS_FAULT_DEVICE_ARRIVE;
    if (comes_back == !hca.is_dead()) {
        return comes_back ? "it works" : "it is dead";
    }
    switch (spec.action) {
        case SIMVERBS_FAULT_HOST_KILL:
            hca.lose_power();
            set_links(node, LinkState::kDown);
            afterwards(later, spec.with.duration, [&hca, &node] { restart(hca, node); });
            return kDone;
        case SIMVERBS_FAULT_DEVICE_REMOVE:
            hca.die();
            hca.set_present(false);
            set_links(node, LinkState::kDown);
            return kDone;
        case SIMVERBS_FAULT_DEVICE_FATAL:
            hca.die();
            return kDone;
        default:
            restart(hca, node);
            return kDone;
    }
}

// Power is a host's, with all its devices.
std::string_view on_host(const FaultSpec& spec, const FaultTarget& target,
                         FaultEnvironment& environment, FaultClock& later) {
    std::string_view outcome;
    for (const std::size_t index : environment.hcas_of(target.hca->host())) {
        Hca& hca = environment.hca(index);
        const std::string_view reason =
            on_device(spec, hca, environment.network().node(hca.node()), later);
        outcome = reason.empty() ? outcome : reason;
    }
    return outcome;
}

std::string_view on_programs(const FaultSpec& spec, const Hca& hca,
                             const FaultEnvironment& environment, FaultClock& later) {
    HostPrograms* const programs = environment.programs();
    if (programs == nullptr) {
        return "nobody runs programs here";
    }
    return spec.action == SIMVERBS_FAULT_PROCESS_STOP
               ? programs->stop(hca.host(), spec.with.duration, later)
               : programs->kill(hca.host());
}

std::string_view on_queue_pair(const FaultSpec& spec, const FaultTarget& target) {
    QueuePair* qp = target.qp.find(*target.hca);
    if (qp == nullptr) {
        return "there is no such queue pair";
    }
    const QpAttributes& attributes = qp->attributes();
    if (attributes.state == QpState::kErr ||
        !next_state(target.hca->personality(), attributes.state, QpTrigger::kQpError,
                    attributes.service)) {
        return "the queue pair is in RESET or ERR";
    }
    FaultCause cause = FaultCause::kInternalError;
    if (spec.action == SIMVERBS_FAULT_RING) {
        cause = target.queue == CompletedQueue::kSend ? FaultCause::kSendRingUnreadable
                                                      : FaultCause::kReceiveRingUnreadable;
    }
    qp->fail(QpTrigger::kQpError, cause);
    return kDone;
}

std::string_view fail_srq(Hca& hca, std::uint32_t handle) {
    SharedReceiveQueue* srq = hca.srqs().find(handle);
    if (srq == nullptr) {
        return "there is no such shared receive queue";
    }
    srq->fail();
    return kDone;
}

std::string_view overrun_cq(Hca& hca, std::uint32_t handle) {
    CompletionQueue* cq = hca.find_cq(handle);
    if (cq == nullptr) {
        return "there is no such completion queue";
    }
    cq->overrun();
    return kDone;
}

std::string_view invalidate_mr(Hca& hca, std::uint32_t lkey) {
    MemoryRegion* region = hca.keys().find_region(lkey);
    if (region == nullptr) {
        return "there is no such memory region";
    }
    hca.keys().renew(*region, hca.personality().key_style);
    return kDone;
}

}  // namespace

std::string_view carry_out(const FaultSpec& spec, const FaultTarget& target,
                           FaultEnvironment& environment, FaultClock& later) {
    switch (row_of(spec.action).subject) {
        case FaultSubject::kLink:
            return on_link(spec, target, later);
        case FaultSubject::kLinkEnd:
            target.direction->pause_until(later.now() + spec.with.duration);
            return kDone;
        case FaultSubject::kPort:
            return on_port(spec, *target.port, environment, later);
        case FaultSubject::kSwitch: {
            const fabric::Node& node = *target.node;
            set_links(node, LinkState::kDown);
            afterwards(later, spec.with.duration, [&node] { set_links(node, LinkState::kUp); });
            return kDone;
        }
        case FaultSubject::kHost:
            return on_host(spec, target, environment, later);
        case FaultSubject::kDevice:
            return on_device(spec, *target.hca, *target.node, later);
        case FaultSubject::kPrograms:
            return on_programs(spec, *target.hca, environment, later);
        case FaultSubject::kQueuePair:
        case FaultSubject::kWorkQueue:
            return on_queue_pair(spec, target);
        case FaultSubject::kSharedReceiveQueue:
            return fail_srq(*target.hca, target.object);
        case FaultSubject::kCompletionQueue:
            return overrun_cq(*target.hca, target.object);
        case FaultSubject::kMemoryRegion:
            return invalidate_mr(*target.hca, target.object);
        case FaultSubject::kSubnetManager:
            return environment.stop_subnet_manager() ? kDone : "there is none";
        case FaultSubject::kNothing:
            return kDone;
        case FaultSubject::kPacket:
        case FaultSubject::kFault:
        case FaultSubject::kWorkRequest:
        case FaultSubject::kSendRequest:
        case FaultSubject::kCall:
            return kDone;  // where they wait (fault_board.cpp)
    }
    return kDone;
}

}  // namespace simverbs
