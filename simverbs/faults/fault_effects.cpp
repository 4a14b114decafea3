#include "simverbs/faults/fault_effects.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simverbs/faults/fabric_change.hpp"
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

// Makes `change` now and, unless `duration` is zero, `back` after it.
std::string_view change_for(FaultEnvironment& environment, FaultClock& later,
                            const FabricChange& change, SimDuration duration,
                            const FabricChange& back) {
    const std::string_view reason = apply(change, environment);
    if (reason.empty() && duration > SimDuration::zero()) {
        later.after(duration, [&environment, back] { apply(back, environment); });
    }
    return reason;
}

// Down for `duration`, up for `interval`, `times` times.
void flap(FaultEnvironment& environment, FaultClock& later, fabric::Link& link,
          const FaultArguments& with) {
    apply(SetLinkState{link, LinkState::kDown}, environment);
    later.after(with.duration, [&environment, &later, &link, with] {
        apply(SetLinkState{link, LinkState::kUp}, environment);
        FaultArguments rest = with;
        if (--rest.times > 0) {
            later.after(with.interval, [&environment, &later, &link, rest] {
                flap(environment, later, link, rest);
            });
        }
    });
}

std::string_view on_link(const FaultSpec& spec, fabric::Link& link, FaultEnvironment& environment,
                         FaultClock& later) {
    switch (spec.action) {
        case SIMVERBS_FAULT_LINK_DOWN:
            return change_for(environment, later, SetLinkState{link, LinkState::kDown},
                              spec.with.duration, SetLinkState{link, LinkState::kUp});
        case SIMVERBS_FAULT_LINK_UP:
            return apply(SetLinkState{link, LinkState::kUp}, environment);
        case SIMVERBS_FAULT_LINK_FLAP:
            flap(environment, later, link, spec.with);
            return kDone;
        default:
            return apply(SetLinkRate{link, spec.with.width, spec.with.speed}, environment);
    }
}

std::string_view on_port(const FaultSpec& spec, fabric::Port& port, FaultEnvironment& environment,
                         FaultClock& later) {
    const auto value = static_cast<std::uint16_t>(spec.with.value);
    switch (spec.action) {
        case SIMVERBS_FAULT_PORT_ERROR:
            return change_for(environment, later, HoldPort{port, fabric::PhysicalState::kPolling},
                              spec.with.duration, HoldPort{port, fabric::PhysicalState::kLinkUp});
        case SIMVERBS_FAULT_LID:
            return apply(SetLid{port, fabric::Lid{value}}, environment);
        case SIMVERBS_FAULT_PKEY: {
            std::vector<std::uint16_t> pkeys = port.attributes().pkeys;
            pkeys.resize(std::max<std::size_t>(pkeys.size(), spec.with.offset + 1U));
            pkeys[spec.with.offset] = value;
            return apply(SetPkeys{port, std::move(pkeys)}, environment);
        }
        case SIMVERBS_FAULT_SM_LID:
            return apply(SetSmLid{port, fabric::Lid{value}}, environment);
        default:
            return apply(AskToReregister{port}, environment);
    }
}

void restart(FaultEnvironment& environment, Hca& hca, const fabric::Node& node) {
    hca.restart();
    apply(SetNodeLinks{node, LinkState::kUp}, environment);
}

// Returns why the device is not in the state that the action changes.
std::string_view refuse(simverbs_fault_action action, const Hca& hca) {
    switch (action) {
        case SIMVERBS_FAULT_HOST_KILL:
            return hca.has_power() ? kDone : "it has no power";
        case SIMVERBS_FAULT_HOST_RESTART:
            return hca.is_dead() ? kDone : "it works";
        case SIMVERBS_FAULT_DEVICE_ARRIVE:
            return !hca.is_dead() ? "it works" : hca.has_power() ? kDone : "its host has no power";
        default:
            return hca.is_dead() ? "it is dead" : kDone;
    }
}

// "the programs of h1 were killed at 2.2 us by the injected fault "power" (host_kill)".
std::string sentence(std::string_view change, const FaultSpec& spec, const FaultClock& clock) {
    return fmt::format(
        "{} at {} by the injected fault {}({})", change, fabric::to_string(clock.now()),
        spec.name.empty() ? "" : fmt::format("\"{}\" ", spec.name), to_string(spec.action));
}

std::string_view on_device(const FaultSpec& spec, Hca& hca, const fabric::Node& node,
                           FaultEnvironment& environment, FaultClock& later) {
    if (const std::string_view reason = refuse(spec.action, hca); !reason.empty()) {
        return reason;
    }
    switch (spec.action) {
        case SIMVERBS_FAULT_HOST_KILL:
            hca.lose_power(sentence("host " + hca.host() + " was killed", spec, later));
            apply(SetNodeLinks{node, LinkState::kDown}, environment);
            if (spec.with.duration > SimDuration::zero()) {
                later.after(spec.with.duration,
                            [&environment, &hca, &node] { restart(environment, hca, node); });
            }
            return kDone;
        case SIMVERBS_FAULT_DEVICE_REMOVE:
            hca.die(sentence("its device was removed", spec, later));
            hca.set_present(false);
            apply(SetNodeLinks{node, LinkState::kDown}, environment);
            return kDone;
        case SIMVERBS_FAULT_DEVICE_FATAL:
            hca.die(sentence("its device failed", spec, later));
            return kDone;
        default:
            restart(environment, hca, node);
            return kDone;
    }
}

// Power is a host's, with all its devices; its programs end with it.
std::string_view on_host(const FaultSpec& spec, const FaultTarget& target,
                         FaultEnvironment& environment, FaultClock& later) {
    std::string_view outcome;
    if (spec.action == SIMVERBS_FAULT_HOST_KILL && environment.programs() != nullptr) {
        environment.programs()->kill(
            target.hca->host(),
            sentence("host " + target.hca->host() + " was killed", spec, later));
    }
    for (const std::size_t index : environment.hcas_of(target.hca->host())) {
        Hca& hca = environment.hca(index);
        const std::string_view reason =
            on_device(spec, hca, environment.network().node(hca.node()), environment, later);
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
               : programs->kill(
                     hca.host(),
                     sentence("the programs of " + hca.host() + " were killed", spec, later));
}

std::string_view on_queue_pair(const FaultSpec& spec, const FaultTarget& target) {
    QueuePair* qp = target.qp.find(*target.hca);
    if (qp == nullptr || qp->context().is_dead()) {
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

constexpr bool is_object_of_device(FaultSubject subject) {
    return subject >= FaultSubject::kQueuePair && subject <= FaultSubject::kMemoryRegion;
}

}  // namespace

std::string_view carry_out(const FaultSpec& spec, const FaultTarget& target,
                           FaultEnvironment& environment, FaultClock& later) {
    const FaultSubject subject = row_of(spec.action).subject;
    if (is_object_of_device(subject) && target.hca->is_dead()) {
        return "the device is dead";
    }
    switch (subject) {
        case FaultSubject::kLink:
            return on_link(spec, *target.link, environment, later);
        case FaultSubject::kLinkEnd:
            target.direction->pause_until(later.now() + spec.with.duration);
            return kDone;
        case FaultSubject::kPort:
            return on_port(spec, *target.port, environment, later);
        case FaultSubject::kSwitch:
            return change_for(environment, later, SetNodeLinks{*target.node, LinkState::kDown},
                              spec.with.duration, SetNodeLinks{*target.node, LinkState::kUp});
        case FaultSubject::kHost:
            return on_host(spec, target, environment, later);
        case FaultSubject::kDevice:
            return on_device(spec, *target.hca, *target.node, environment, later);
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
        case FaultSubject::kPacket:
        case FaultSubject::kFault:
        case FaultSubject::kWorkRequest:
        case FaultSubject::kSendRequest:
        case FaultSubject::kCall:
        case FaultSubject::kPoll:
        case FaultSubject::kCompletion:
        case FaultSubject::kCompletionEvent:
            return kDone;  // those with a subject act where they wait (fault_board.cpp)
    }
    return kDone;
}

}  // namespace simverbs
