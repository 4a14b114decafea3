#include "simverbs/abi/misuse.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "simverbs/abi/refusal_reason.hpp"
#include "simverbs/abi/warnings.hpp"

namespace simverbs::abi {
namespace {

std::array<std::atomic_flag, kMisuseCount> g_named;

}  // namespace

bool say_misuse(Misuse misuse, std::uint32_t subject, std::string_view detail) {
    if (!warnings_wanted() || g_named[static_cast<std::size_t>(misuse)].test_and_set()) {
        return false;
    }
    fmt::print(stderr, "simverbs: {}: {}{}{}{}\n", to_string(misuse), properties(misuse).text,
               subject == 0 ? "" : fmt::format(" [{:#x}]", subject), detail.empty() ? "" : ": ",
               detail);
    return true;
}

void allow_misuse(Misuse misuse, bool allowed) {
    std::atomic_flag& named = g_named[static_cast<std::size_t>(misuse)];
    if (allowed) {
        named.test_and_set();
    } else {
        named.clear();
    }
}

void name_misuse(Context& context, Misuse misuse, std::uint32_t subject, std::string_view detail) {
    if (say_misuse(misuse, subject, detail)) {
        ReportMisuse command;
        command.misuse = misuse;
        command.subject = subject;
        context.execute(command);
    }
}

void name_bad_modify(Context& context, const QueuePair& qp, QpState from, QpState to,
                     QpAttrs given) {
    const Personality& personality = context.personality();
    const QpTransition* row = find_modify(personality, from, to, qp.service->service);
    if (row == nullptr) {
        return;  // no such transition, whatever the attributes
    }
    const QpAttrCheck check = check_modify(personality, *row, qp.service->service, given);
    const auto detail = [from, to](QpAttrs attributes) {
        return fmt::format("{} to {}: {}", to_string(from), to_string(to), names_of(attributes));
    };
    if (!check.missing.empty()) {
        name_misuse(context, Misuse::kAttributeMissing, qp.queues.qpn(), detail(check.missing));
    }
    if (!check.superfluous.empty()) {
        name_misuse(context, Misuse::kAttributeSuperfluous, qp.queues.qpn(),
                    detail(check.superfluous));
    }
}

void name_found(Context& context) {
    if (const auto found = context.watch()->take()) {
        name_misuse(context, found->misuse, found->subject, found->detail);
    }
}

void count_poll(CompletionQueue& cq, bool found_any) {
    if (found_any) {
        cq.vain_polls = CompletionQueue::kHasFound;
    } else if (cq.vain_polls != CompletionQueue::kHasFound) {
        ++cq.vain_polls;
    }
}

bool was_polled_once_in_vain(const CompletionQueue& cq) {
    return cq.vain_polls == 1 && cq.channel == nullptr;
}

bool awaits_send(const Context& context, const QueuePair& qp) {
    return context.watch() != nullptr &&
           context.watch()->has_send_before(qp.queues.qpn(), qp.signaled);
}

void name_polled_once(Context& context, QueuePair& qp) {
    const ibv_qp& handle = *qp.c_handle();
    const auto name = [&](ibv_cq* cq, bool has_more) {
        if (cq != nullptr && was_polled_once_in_vain(as_object(cq)) &&
            (has_more || as_object(cq).queue.unread(handle.qp_num) > 0)) {
            name_misuse(context, Misuse::kPolledOnce, cq->handle, {});
        }
    };
    name(handle.send_cq, awaits_send(context, qp));
    name(handle.recv_cq, false);
}

void forget_named_misuse() {
    BufferWatch::forget_remote_keys();
    forget_reasons();
    for (std::atomic_flag& named : g_named) {
        named.clear();
    }
}

}  // namespace simverbs::abi
