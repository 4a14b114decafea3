#include "simverbs/world/hang_report.hpp"

#include <fmt/format.h>

#include "fabric/core/counted.hpp"

#include "simverbs/hca/completion_queue.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"
#include "simverbs/model/completion_faults.hpp"
#include "simverbs/model/timers.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {
namespace {

std::string missing_receive(const QueuePairReport& report) {
    return fmt::format(
        "its peer had no receive posted, {} ({})", fabric::counted(report.rnr_naks, "time"),
        report.rnr_retries_left == kRnrRetryForever
            ? "RNR retries have no limit"
            : fabric::counted(report.rnr_retries_left, "RNR retry", "RNR retries") + " left");
}

std::string why_dropped(FaultCause cause, Service service) {
    switch (cause) {
        case FaultCause::kWrongQkey:
            return "it carried another Q_Key than that of the queue pair";
        case FaultCause::kUnackedNoReceive:
            return "no receive was posted for it";
        case FaultCause::kUnackedReceiveTooSmall:
            return service == Service::kUd ? "the receive is too small for it (UD: 40 bytes for "
                                             "the GRH, then the message)"
                                           : "the receive is too small for it";
        default:
            return std::string(to_string(cause));
    }
}

// "; dropped 1 message: no receive was posted for it".
std::string dropped(const QueuePairReport& report) {
    if (report.dropped == 0) {
        return "";
    }
    const std::string why = why_dropped(report.drop_cause, report.service);
    return report.dropped == 1
               ? "; dropped 1 message: " + why
               : fmt::format("; dropped {} messages, the last because {}", report.dropped, why);
}

// A line where completions lie in it, nobody will be told of the next one, or there is none.
std::string describe(const CompletionQueue& cq) {
    const std::uint32_t unread = cq.unconsumed();
    if (unread == 0 && !cq.lacks_request() && !cq.was_overrun()) {
        return "";
    }
    std::string text = fmt::format("  CQ {:#x}:", cq.handle());
    if (cq.was_overrun()) {
        return text + fmt::format(
                          " of {}: overrun (IBV_EVENT_CQ_ERR), so it is dead and its queue "
                          "pairs are in ERR\n",
                          fabric::counted(cq.entries(), "entry", "entries"));
    }
    if (unread > 0) {
        text += fmt::format(" {} not polled",
                            fabric::counted(unread, "completion was", "completions were"));
    }
    if (cq.lacks_request()) {
        text += fmt::format("{} it is not armed (ibv_req_notify_cq): its channel gets no event",
                            unread > 0 ? ";" : "");
    }
    return text + "\n";
}

}  // namespace

std::string waits_for(const QueuePairReport& report) {
    if (!report.why_dead.empty()) {
        return fmt::format("for nothing: {}", report.why_dead);
    }
    if (report.state == QpState::kErr || report.state == QpState::kSqe) {
        return "for nothing: what it had was flushed";
    }
    if (report.state == QpState::kInit) {
        return "for its program to connect it";
    }
    if (report.rnr_until) {
        return fmt::format("until {}: {}", fabric::to_string(*report.rnr_until),
                           missing_receive(report));
    }
    if (report.answer_until) {
        return fmt::format("for an answer of QP {:#x}, until {} ({} left){}", report.dest_qpn,
                           fabric::to_string(*report.answer_until),
                           fabric::counted(report.retries_left, "retry", "retries"),
                           report.rnr_naks > 0 ? "; " + missing_receive(report) : "");
    }
    if (report.sends == 0) {
        return report.receives == 0 ? "for nothing: nothing is posted" : "for a message";
    }
    if (report.state != QpState::kRts) {
        return "for RTS";
    }
    return report.sends_started > 0 ? "for an answer, for ever (timeout 0)"
                                    : "for an earlier READ, atomic or fence";
}

std::string describe_queue_pairs(const Hca& hca) {
    std::string text;
    hca.for_each_qp([&text](const QueuePair& qp) {
        const QueuePairReport report = qp.report();
        if (report.state == QpState::kReset) {
            return;
        }
        text += fmt::format(
            "  QP {:#x} {} {}: next PSN {}, expects PSN {}, {} outstanding ({} begun), {} posted; "
            "waits {}{}\n",
            report.qpn, to_string(report.service), to_string(report.state), report.next_psn,
            report.expected_psn, fabric::counted(report.sends, "send"), report.sends_started,
            fabric::counted(report.receives, "receive"), waits_for(report), dropped(report));
    });
    if (!text.empty()) {
        hca.for_each_cq([&text](const CompletionQueue& cq) { text += describe(cq); });
    }
    return text;
}

std::string describe_queue_pairs(const Simulation& simulation) {
    std::string text;
    if (!simulation.credit_loop().empty()) {
        text += fmt::format("frames wait for each other's buffers: {}\n", simulation.credit_loop());
    }
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        const Hca& hca = simulation.hca(i);
        if (const std::string queue_pairs = describe_queue_pairs(hca); !queue_pairs.empty()) {
            text += fmt::format("host {}\n{}", hca.name(), queue_pairs);
        }
    }
    return text.empty() ? "no queue pair has left RESET\n" : text;
}

std::string describe_unarmed(const Simulation& simulation) {
    std::string text;
    for (std::size_t i = 0; i < simulation.hca_count(); ++i) {
        const Hca& hca = simulation.hca(i);
        hca.for_each_cq([&](const CompletionQueue& cq) {
            if (text.empty() && cq.lacks_request() && cq.unconsumed() > 0) {
                text = fmt::format(
                    "everyone sleeps, but CQ {:#x} of {} has {} and is not armed, so "
                    "ibv_get_cq_event() does not return: call ibv_req_notify_cq() once for each "
                    "event, and then ibv_poll_cq() until it returns 0",
                    cq.handle(), hca.name(), fabric::counted(cq.unconsumed(), "completion"));
            }
        });
    }
    return text;
}

std::string hang_report(Simulation& simulation, std::string_view why) {
    return fmt::format("{}, at {} of virtual time\n{}", why,
                       fabric::to_string(simulation.loop().now()),
                       describe_queue_pairs(simulation));
}

}  // namespace simverbs
