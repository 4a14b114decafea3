#include "simverbs/hca/completion_counter.hpp"

#include <cerrno>
#include <optional>

#include "simverbs/hca/device_context.hpp"
#include "simverbs/hca/hca.hpp"
#include "simverbs/hca/queue_pair.hpp"

namespace simverbs {
namespace {

std::optional<CountedOperation> operation_of(WcOpcode opcode) {
    switch (opcode) {
        case WcOpcode::kSend:
        case WcOpcode::kTso:
            return CountedOperation::kSend;
        case WcOpcode::kRdmaRead:
            return CountedOperation::kRead;
        case WcOpcode::kRdmaWrite:
            return CountedOperation::kWrite;
        case WcOpcode::kRecv:
        case WcOpcode::kRecvRdmaWithImm:
            return CountedOperation::kReceive;
        default:
            return std::nullopt;  // rdma-core has no bit for it
    }
}

bool is_entry(CounterEntry entry) {
    return static_cast<std::uint32_t>(entry) < kCounterEntries;
}

}  // namespace

void CompletionCounter::set(CounterEntry entry, std::uint64_t value) {
    const auto index = static_cast<std::size_t>(entry);
    values_[index] = value;
    auto& shared = *reinterpret_cast<CompletionCounterRing*>(ring_.base);
    shared.values[index].store(value, std::memory_order_seq_cst);
}

void CompletionCounter::add(CounterEntry entry, std::uint64_t amount) {
    set(entry, values_[static_cast<std::size_t>(entry)] + amount);
}

void CompletionCounter::count(CounterEntry entry) {
    if (!stopped_) {
        add(entry, 1);
        client_.completion_delivered(nullptr);
    }
}

AttachedCounters::~AttachedCounters() {
    for (CompletionCounter* counter : counters_) {
        if (counter != nullptr) {
            --counter->uses;
        }
    }
}

bool AttachedCounters::attach(CompletionCounter& counter, std::uint32_t operations) {
    for (std::uint32_t i = 0; i < kCountedOperations; ++i) {
        if ((operations & 1U << i) != 0 && counters_[i] != nullptr) {
            return false;
        }
    }
    for (std::uint32_t i = 0; i < kCountedOperations; ++i) {
        if ((operations & 1U << i) != 0) {
            counters_[i] = &counter;
            ++counter.uses;
        }
    }
    return true;
}

void AttachedCounters::completed(WcOpcode opcode, WcStatus status) {
    if (const auto operation = operation_of(opcode)) {
        count(*operation,
              status == WcStatus::kSuccess ? CounterEntry::kCompleted : CounterEntry::kFailed);
    }
}

void AttachedCounters::carried_out(MessageKind kind) {
    if (kind == MessageKind::kRead) {
        count(CountedOperation::kRemoteRead, CounterEntry::kCompleted);
    } else if (kind == MessageKind::kWrite) {
        count(CountedOperation::kRemoteWrite, CounterEntry::kCompleted);
    }
}

void AttachedCounters::count(CountedOperation operation, CounterEntry entry) {
    CompletionCounter* counter = counters_[static_cast<std::size_t>(operation)];
    if (counter != nullptr) {
        counter->count(entry);
    }
}

int QueuePair::attach(CompletionCounter& counter, std::uint32_t operations) {
    if (attributes_.state != QpState::kReset && attributes_.state != QpState::kInit) {
        return context().refuse(EINVAL,
                                "QP {:#x} is in {}: counters are attached in RESET and INIT", qpn(),
                                to_string(attributes_.state));
    }
    if (counters_ == nullptr) {
        counters_ = std::make_unique<AttachedCounters>();
    }
    return counters_->attach(counter, operations)
               ? 0
               : context().refuse(EBUSY, "an operation of op_mask {:#x} has a counter at QP {:#x}",
                                  operations, qpn());
}

int DeviceContext::execute(const CreateCompletionCounter& /*command*/,
                           CreateCompletionCounterReply& reply) {
    const std::uint32_t most = hca_.personality().limits.max_completion_counters;
    if (most == 0) {
        return refuse(EOPNOTSUPP, "the device has no completion counters");
    }
    if (completion_counters_.size() >= most) {
        return refuse(ENOMEM, "the context has max_counters {} completion counters", most);
    }
    const RingMemory ring =
        client_.make_ring(sizeof(CompletionCounterRing), sizeof(CompletionCounterRing));
    if (ring.base == nullptr) {
        return refuse_ring();
    }
    auto counter = std::make_unique<CompletionCounter>(client_, ring);
    reply = {++last_completion_counter_, client_.ring_reply(ring)};
    completion_counters_.emplace(reply.handle, std::move(counter));
    return 0;
}

int DeviceContext::execute(const DestroyCompletionCounter& command, EmptyReply& /*reply*/) {
    const CompletionCounter* counter = find(completion_counters_, command.handle);
    if (counter == nullptr) {
        return refuse_handle(ENOENT, "completion counter", command.handle);
    }
    if (counter->uses > 0) {
        return refuse_use(command.handle, *counter);
    }
    completion_counters_.erase(command.handle);
    return 0;
}

int DeviceContext::execute(const SetCompletionCounter& command, EmptyReply& /*reply*/) {
    CompletionCounter* counter = find(completion_counters_, command.handle);
    if (counter == nullptr) {
        return refuse_handle(ENOENT, "completion counter", command.handle);
    }
    if (!is_entry(command.entry)) {
        return refuse(EINVAL, "entry {} is unknown", static_cast<unsigned>(command.entry));
    }
    counter->set(command.entry, command.value);
    return 0;
}

int DeviceContext::execute(const IncrementCompletionCounter& command, EmptyReply& /*reply*/) {
    CompletionCounter* counter = find(completion_counters_, command.handle);
    if (counter == nullptr) {
        return refuse_handle(ENOENT, "completion counter", command.handle);
    }
    if (!is_entry(command.entry)) {
        return refuse(EINVAL, "entry {} is unknown", static_cast<unsigned>(command.entry));
    }
    counter->add(command.entry, command.amount);
    return 0;
}

// A queue pair that another context made, and this one has opened, outlives this context's
// counters.
int DeviceContext::execute(const AttachCompletionCounter& command, EmptyReply& /*reply*/) {
    QueuePair* qp = find_qp(command.qp);
    if (qp == nullptr || &qp->context() != this) {
        return refuse(EINVAL, "QP {:#x} was not made by this context", command.qp);
    }
    if (qp->spreads_frames()) {
        return refuse_spread();
    }
    CompletionCounter* counter = find(completion_counters_, command.handle);
    if (counter == nullptr) {
        return refuse_handle(ENOENT, "completion counter", command.handle);
    }
    if ((command.operations & ~kAllCountedOperations) != 0) {
        return refuse(EOPNOTSUPP, "op_mask {:#x} has bits other than {:#x}", command.operations,
                      kAllCountedOperations);
    }
    return command.operations == 0 ? refuse(EINVAL, "op_mask is 0")
                                   : qp->attach(*counter, command.operations);
}

}  // namespace simverbs
