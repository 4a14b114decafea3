#include "simverbs/world/attachment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "simverbs/hca/command_list.hpp"
#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca_events.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {
namespace {

// Returns the object of a command, for the trace: the object it made or names, or none.
template <Command C>
std::uint32_t subject(const C& command, const typename C::Reply& reply, int error) {
    if constexpr (requires { command.handle; }) {
        return command.handle;
    } else if constexpr (requires { reply.handle; }) {
        return error == 0 ? reply.handle : 0;
    } else {
        return 0;
    }
}

// Returns true if a command works on a device that died: a driver may still give back what it has,
// since the host's memory of it is its own (Linux mlx5, internal_err_ret_value).
template <Command C>
constexpr bool works_when_dead() {
    constexpr auto kEnds = std::to_array<CommandCode>(
        {CommandCode::kDeallocatePd, CommandCode::kDeregisterMr, CommandCode::kFreeDm,
         CommandCode::kDeallocateMw, CommandCode::kDestroyChannel, CommandCode::kDestroyCq,
         CommandCode::kDestroyQp, CommandCode::kDestroyAh, CommandCode::kDetachMulticast,
         CommandCode::kDestroySrq, CommandCode::kCloseXrcd, CommandCode::kDestroyFlow,
         CommandCode::kDestroyCounters, CommandCode::kDestroyWq,
         CommandCode::kDestroyIndirectionTable, CommandCode::kReportMisuse,
         CommandCode::kDestroyCompletionCounter});
    return std::find(kEnds.begin(), kEnds.end(), C::kCode) != kEnds.end();
}

constexpr std::string_view kFaultRefuses = "an injected fault refuses this call";

// The errno of a fault that is due.
int refused(Hca& hca, CommandCode command) {
    return hca.faults() == nullptr ? 0 : hca.faults()->command(hca, command);
}

}  // namespace

Attachment::Attachment(Simulation& simulation, Client& client, std::vector<std::size_t> hcas)
    : simulation_(simulation), client_(client), hcas_(std::move(hcas)) {}

Attachment::~Attachment() {
    for (const DeviceContext* context : opened_) {
        if (context != nullptr) {
            context->hca().close(context->handle());
        }
    }
}

void Attachment::abandon() {
    for (DeviceContext* const context : opened_) {
        if (context != nullptr && !context->is_dead()) {
            context->hca().abandon(*context);
        }
    }
}

DeviceContext* Attachment::find(std::uint32_t context) const {
    return context == 0 || context > opened_.size() ? nullptr : opened_[context - 1];
}

EventPipe* Attachment::events_of(const EventSource& source) const {
    DeviceContext* const context = find(source.context);
    return context == nullptr ? nullptr : context->events_of(source.channel);
}

int Attachment::open(const OpenContext& command, HandleReply& reply) {
    if (command.device >= hcas_.size()) {
        return ENODEV;
    }
    Hca& hca = device(command.device);
    if (!hca.is_present()) {
        refusal_ = "the device was unplugged";
        return ENODEV;
    }
    if (hca.is_dead()) {
        refusal_ = "the device had DEVICE_FATAL and was not restarted";
        return EIO;
    }
    if (const int error = refused(hca, OpenContext::kCode); error != 0) {
        refusal_ = kFaultRefuses;
        return error;
    }
    DeviceContext* context = hca.open(client_);
    if (context == nullptr) {
        refusal_ = fmt::format("the device has all of its {} contexts open", kMaxContexts);
        return ENOMEM;
    }
    client_.hand_over(context->take_event_reader());
    opened_.push_back(context);
    reply.handle = static_cast<std::uint32_t>(opened_.size());
    hca.trace(ContextDescribed{hca.node(), reply.handle, true});
    return 0;
}

int Attachment::close(const CloseContext& command) {
    const DeviceContext* context = find(command.context);
    if (context == nullptr) {
        return ENOENT;
    }
    opened_[command.context - 1] = nullptr;
    Hca& hca = context->hca();
    hca.trace(ContextDescribed{hca.node(), command.context, false});
    hca.close(context->handle());
    return 0;
}

template <Command C>
int Attachment::execute_on_context(const C& command, typename C::Reply& reply) {
    DeviceContext* context = find(command.context);
    if (context == nullptr) {
        return ENOENT;
    }
    if constexpr (std::is_same_v<C, ReportMisuse>) {
        // No call of the program: a run has the same digest with warnings as without.
        return context->execute(command, reply);
    }
    Hca& hca = context->hca();
    constexpr bool kIsPoll = std::is_same_v<C, AskForPoll>;  // it is shortened, never refused
    int error = kIsPoll || context->is_dead() ? 0 : refused(hca, C::kCode);
    if (error != 0) {
        refusal_ = kFaultRefuses;
    } else if (works_when_dead<C>() || !context->is_dead()) {
        error = context->execute(command, reply);
        refusal_ = context->take_refusal();
    } else {  // what came of the call may have been the end of the device
        error = EIO;
        refusal_ = context->why_dead();
    }
    hca.trace(VerbCalled{hca.node(), C::kCode, subject(command, reply, error), error});
    return error;
}

template <Command C>
int Attachment::run(std::span<const std::byte> command, std::span<std::byte> reply) {
    C in;
    typename C::Reply out{};
    if (command.size() != sizeof in || reply.size() < sizeof out) {
        return EPROTO;
    }
    std::memcpy(&in, command.data(), sizeof in);
    int error = 0;
    try {
        if constexpr (std::is_same_v<C, OpenContext>) {
            error = open(in, out);
        } else if constexpr (std::is_same_v<C, CloseContext>) {
            error = close(in);
        } else {
            error = execute_on_context(in, out);
        }
    } catch (const std::system_error& failure) {
        error = failure.code().value();  // out of descriptors
        refusal_ = failure.what();
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
        refusal_ = "the machine is out of memory";
    }
    std::memcpy(reply.data(), &out, sizeof out);
    return error;
}

int Attachment::execute(CommandCode code, std::span<const std::byte> command,
                        std::span<std::byte> reply) {
    using Run = int (Attachment::*)(std::span<const std::byte>, std::span<std::byte>);
    static constexpr auto kRuns =
        Commands::map([]<class C>(std::type_identity<C>) -> Run { return &Attachment::run<C>; });
    refusal_.clear();
    const auto index = static_cast<std::size_t>(code);
    return index < kRuns.size() ? (this->*kRuns[index])(command, reply) : EPROTO;
}

bool Attachment::ring(const Doorbell& doorbell) {
    const DeviceContext* context = find(doorbell.context);
    if (context == nullptr) {
        return false;
    }
    if (context->is_dead()) {
        return true;
    }
    Hca& hca = context->hca();
    if (doorbell.queue == DoorbellQueue::kWork) {
        ReceiveWorkQueue* wq = context->find_wq(doorbell.qpn);
        if (wq != nullptr) {
            hca.trace(WorkQueuePosted{hca.node(), doorbell.qpn, doorbell.producer});
            wq->posted();
        }
        return wq != nullptr;
    }
    if (doorbell.queue == DoorbellQueue::kTag) {
        SharedReceiveQueue* srq = context->find_srq(doorbell.qpn);
        if (srq != nullptr) {
            hca.trace(TagOperationsPosted{hca.node(), doorbell.qpn, doorbell.producer});
            srq->posted_operations(doorbell.producer);
        }
        return srq != nullptr;
    }
    if (doorbell.queue == DoorbellQueue::kArm) {
        CompletionQueue* cq = context->find_cq(doorbell.qpn);
        if (cq != nullptr && hca.personality().cq_arm_tells_of_waiting) {
            cq->notify_of_waiting();
        }
        return cq != nullptr;
    }
    QueuePair* qp = context->find_qp(doorbell.qpn);
    if (qp == nullptr) {
        return false;  // destroyed since, or never was
    }
    const bool is_send = doorbell.queue == DoorbellQueue::kSend;
    hca.trace(WorkPosted{hca.node(), doorbell.qpn, is_send, doorbell.producer});
    if (is_send) {
        qp->posted_sends(doorbell.producer);
    } else {
        qp->posted_receives(doorbell.producer);
    }
    return true;
}

}  // namespace simverbs
