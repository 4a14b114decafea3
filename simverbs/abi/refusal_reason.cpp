#include "simverbs/abi/refusal_reason.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "simverbs/abi/control.hpp"
#include "simverbs/abi/send_request.hpp"
#include "simverbs/abi/warnings.hpp"

namespace simverbs::abi {
namespace {

// A program that fails in ever new ways fills no memory.
constexpr std::size_t kMostReasons = 256;
std::mutex g_lock;
std::set<std::string> g_said;

std::string sentence_of(std::string_view verb, std::optional<std::uint32_t> number,
                        std::string_view reason) {
    const std::string subject = number ? fmt::format(" [{:#x}]", *number) : "";
    return fmt::format("{} refused{}: {}", verb, subject, reason);
}

// Keeps a reason that is no mistake for simverbs_last_error() alone.
void keep(std::string_view verb, std::optional<std::uint32_t> number, std::string_view reason) {
    last_error() = sentence_of(verb, number, reason);
}

// Kept for simverbs_last_error(), and printed where that is asked for.
void say(std::string_view verb, std::optional<std::uint32_t> number, int error,
         std::string_view reason) {
    keep(verb, number, reason);
    if (!warnings_wanted()) {
        return;
    }
    // NOLINTBEGIN(concurrency-mt-unsafe): the text of an errno
    const std::string line =
        fmt::format("simverbs: {} ({})\n", sentence_of(verb, number, reason), std::strerror(error));
    // NOLINTEND(concurrency-mt-unsafe)
    const std::lock_guard lock(g_lock);
    if (g_said.size() < kMostReasons && g_said.insert(line).second) {
        std::fputs(line.c_str(), stderr);
    }
}

// Programs read the tables of a port until there is no further entry.
constexpr bool looks_for_end(CommandCode code) {
    return code == CommandCode::kQueryGid || code == CommandCode::kQueryPkey;
}

constexpr bool is_state(std::uint32_t value) {
    return value <= static_cast<std::uint32_t>(QpState::kErr);
}

// An attribute with its name in ibv_qp_attr and the largest value that it may have.
struct Bound {
    QpAttr attr;
    const char* field;
    std::uint32_t value;
    std::uint32_t most;
};

// The bound that the device found exceeded; "" for an attribute without one.
std::string bound_reason(const DeviceLimits& limits, QpAttrs refused, const QpValues& values) {
    constexpr std::uint32_t kLargest = Psn::kModulus - 1;  // of 24 bits
    const auto bounds = std::to_array<Bound>({
        {QpAttr::kRqPsn, "rq_psn", values.rq_psn, kLargest},
        {QpAttr::kSqPsn, "sq_psn", values.sq_psn, kLargest},
        {QpAttr::kDestQpn, "dest_qp_num", values.dest_qpn, kLargest},
        {QpAttr::kTimeout, "timeout", values.timeout, kAckTimeoutCodes - 1},
        {QpAttr::kRetryCnt, "retry_cnt", values.retry_count, kMaxRetryCount},
        {QpAttr::kRnrRetry, "rnr_retry", values.rnr_retry, kMaxRetryCount},
        {QpAttr::kMinRnrTimer, "min_rnr_timer", values.min_rnr_timer, kRnrTimerCodes - 1},
        {QpAttr::kMaxRdAtomic, "max_rd_atomic", values.max_rd_atomic,
         static_cast<std::uint32_t>(limits.max_qp_init_rd_atom)},
        {QpAttr::kMaxDestRdAtomic, "max_dest_rd_atomic", values.max_dest_rd_atomic,
         static_cast<std::uint32_t>(limits.max_qp_rd_atom)},
    });
    for (const Bound& bound : bounds) {
        if (refused.contains(bound.attr) && bound.value > bound.most) {
            return fmt::format("{} {} is more than {}", bound.field, bound.value, bound.most);
        }
    }
    return "";
}

std::string value_reason(const Context& context, QpAttrs given, const QpValues& values,
                         const ModifyQpReply& reply) {
    const auto refused = QpAttrs::from_bits(reply.refused);
    const std::uint32_t ports = context.device().info().ports;
    const auto is_port = [ports](std::uint8_t port) { return port >= 1 && port <= ports; };
    if (refused.contains(QpAttr::kPathMtu) && reply.active_mtu != 0) {
        constexpr std::uint32_t kLargest = 5;  // IBV_MTU_4096
        if (values.path_mtu < 1 || values.path_mtu > kLargest) {
            return fmt::format("path_mtu {} is none of IBV_MTU_256 (1) to IBV_MTU_4096 (5)",
                               values.path_mtu);
        }
        return fmt::format(
            "path_mtu IBV_MTU_{} is more than the port's active_mtu of {} (ibv_query_port); on "
            "Ethernet the frames of its link decide: packets of 4096 bytes want `mtu: 4200B`",
            128U << values.path_mtu, 128U << reply.active_mtu);
    }
    if (refused.contains(QpAttr::kPort) && !is_port(values.port)) {
        return fmt::format("port_num {} is none of the ports 1 to {}", values.port, ports);
    }
    if (std::string reason = bound_reason(context.personality().limits, refused, values);
        !reason.empty()) {
        return reason;
    }
    return fmt::format(
        "a value of {} is out of range",
        names_of(!refused.empty() ? refused : given.without(QpAttr::kState | QpAttr::kCurState)));
}

std::string modify_reason(const Context& context, const QueuePair& qp,
                          const RefusedModify& refused) {
    const auto& [from, given, values, reply, error, refusal] = refused;
    if (!refusal.empty()) {
        const bool moves = given.contains(QpAttr::kState) && is_state(values.state);
        return moves ? fmt::format("{} to {}: {}", to_string(from),
                                   to_string(static_cast<QpState>(values.state)), refusal)
                     : refusal;
    }
    if (error == EOPNOTSUPP) {
        return fmt::format("the device does not take {}", names_of(given));
    }
    if (given.contains(QpAttr::kState) && !is_state(values.state)) {
        return fmt::format("{} is no state", values.state);
    }
    const QpState to = given.contains(QpAttr::kState) ? static_cast<QpState>(values.state) : from;
    if (given.contains(QpAttr::kCurState) &&
        values.current_state != static_cast<std::uint32_t>(from)) {
        return fmt::format("CUR_STATE is not {}, in which the queue pair is", to_string(from));
    }
    const Personality& personality = context.personality();
    const QpTransition* row = find_modify(personality, from, to, qp.service->service);
    const std::string move = fmt::format("{} to {}", to_string(from), to_string(to));
    if (row == nullptr) {
        return fmt::format("{} is no transition of {}", move, qp.service->name);
    }
    const QpAttrCheck check = check_modify(personality, *row, qp.service->service, given);
    if (!check.missing.empty()) {
        return fmt::format("{} lacks {}", move, names_of(check.missing));
    }
    if (!check.superfluous.empty()) {
        return fmt::format("{} does not take {}", move, names_of(check.superfluous));
    }
    return fmt::format("{}: {}", move, value_reason(context, given, values, reply));
}

bool sends_are_too_early(QpState state) {
    return state == QpState::kReset || state == QpState::kInit || state == QpState::kRtr;
}

}  // namespace

std::string names_of(QpAttrs attributes) {
    std::string names;
    for (const QpAttrName& row : kQpAttrNames) {
        if (attributes.contains(row.attr)) {
            names += names.empty() ? "" : ", ";
            names += row.name;
        }
    }
    return names;
}

void explain_modify(const Context& context, const QueuePair& qp, const RefusedModify& refused) {
    say("ibv_modify_qp", qp.queues.qpn(), refused.error, modify_reason(context, qp, refused));
}

void explain_send(const Context& context, QueuePair& qp, const ibv_send_wr& wr, const char* verb,
                  int error) {
    if (error == ENOMEM) {
        keep(verb, qp.queues.qpn(),
             fmt::format("the send queue is full: it holds max_send_wr {} requests",
                         qp.queues.send().shape().limit));
        return;
    }
    const auto why = [&]() -> std::string {
        if (error == EIO) {
            return "the context is another process's";
        }
        if (sends_are_too_early(qp.queues.state())) {
            return fmt::format("the queue pair is in {}, sends are taken from RTS on",
                               to_string(qp.queues.state()));
        }
        const WrOpcodeProperties* opcode = find_wr_opcode(opcode_of(wr));
        if (opcode == nullptr) {
            return fmt::format("{} is no opcode", opcode_of(wr));
        }
        if (!carries_out(context.personality(), *opcode, qp.service->service)) {
            return fmt::format("{} is no opcode of {}", opcode->name, qp.service->name);
        }
        if (wr.num_sge < 0 ||
            static_cast<std::uint32_t>(wr.num_sge) > qp.queues.send().shape().max_segments) {
            return fmt::format("num_sge is {}, max_send_sge {}", wr.num_sge,
                               qp.queues.send().shape().max_segments);
        }
        if (opcode_of(wr) == IBV_WR_BIND_MW) {
            return "the window, its region or its rights do not fit the verb";
        }
        if (qp.service->uses_ah && wr.wr.ud.ah == nullptr) {
            return "a datagram needs an address handle";
        }
        if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
            return opcode->may_be_inline
                       ? fmt::format("more inline bytes than max_inline_data {}", qp.inline_bytes)
                       : fmt::format("{} cannot be inline", opcode->name);
        }
        return fmt::format("{} does not fit this request", opcode->name);
    };
    say(verb, qp.queues.qpn(), error, why());
}

void explain_batch(const Context& /*context*/, QueuePair& qp, int error) {
    if (error == ENOMEM) {
        keep("ibv_wr_complete", qp.queues.qpn(),
             fmt::format("the send queue has no room for the batch: it holds max_send_wr {} "
                         "requests",
                         qp.queues.send().shape().limit));
        return;
    }
    const QpState state = qp.queues.state();
    say("ibv_wr_complete", qp.queues.qpn(), error,
        sends_are_too_early(state)
            ? fmt::format("the queue pair is in {}, sends are taken from RTS on", to_string(state))
            : "a request of the batch does not fit the queue pair");
}

void explain_receive(const RefusedReceive& refused, const ibv_recv_wr& wr, int error) {
    if (error == ENOMEM) {
        keep(refused.verb, refused.number,
             fmt::format("the queue is full: it holds {} receives", refused.queue.limit));
        return;
    }
    const auto why = [&]() -> std::string {
        if (error == EIO) {
            return "the context is another process's";
        }
        if (refused.has_shared_queue) {
            return "the queue pair takes its receives from its shared receive queue: "
                   "ibv_post_srq_recv";
        }
        if (refused.in_reset) {
            return "the queue is in RESET, receives are taken from INIT on";
        }
        return fmt::format("num_sge is {}, the queue has {}", wr.num_sge,
                           refused.queue.max_segments);
    };
    say(refused.verb, refused.number, error, why());
}

void name_refusal(std::atomic_flag& named, const char* what) {
    last_error() = fmt::format("{} is not modelled: EOPNOTSUPP", what);
    if (warnings_wanted() && !named.test_and_set()) {
        std::fprintf(stderr, "simverbs: %s\n", last_error().c_str());
    }
    errno = EOPNOTSUPP;
}

void keep_reason(std::string_view verb, const std::string& reason) {
    keep(verb, std::nullopt, reason);
}

int refuse_because(std::string_view verb, int error, const std::string& reason) {
    say(verb, std::nullopt, error, reason);
    return with_errno(error);
}

void explain_command(CommandCode code, std::optional<std::uint32_t> number, int error,
                     const std::string& refusal) {
    if (code == CommandCode::kReportMisuse) {
        return;
    }
    const std::string verb = fmt::format("ibv_{}", to_string(code));
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the text of an errno
    const std::string reason = refusal.empty() ? std::strerror(error) : refusal;
    if (looks_for_end(code)) {
        keep(verb, number, reason);
    } else {
        say(verb, number, error, reason);
    }
    errno = error;
}

void forget_reasons() {
    const std::lock_guard lock(g_lock);
    g_said.clear();
}

}  // namespace simverbs::abi
