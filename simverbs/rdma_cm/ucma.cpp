#include "simverbs/rdma_cm/ucma.hpp"

#include <vector>

#include "fabric/core/assert.hpp"

#include "simverbs/rdma_cm/ucma_abi.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {

std::uint32_t LowestFreeNumber::take() {
    if (free_.empty()) {
        return never_taken_++;
    }
    return free_.extract(free_.begin()).value();
}

UcmaContext* Ucma::create_context(UcmaFile& file) {
    if (contexts_.size() >= kMaxContexts) {
        return nullptr;
    }
    const std::uint32_t number = context_numbers_.take();
    UcmaContext& context = contexts_[number];
    context.number = number;
    context.file = &file;
    context.place = ++last_place_;
    file.contexts_.emplace(context.place, number);
    return &context;
}

UcmaContext& Ucma::context_of(const RdmaId& id) {
    const auto found = by_id_.find(id.number());
    SIMVERBS_ASSERT(found != by_id_.end(), "id {} has no context", id.number().value());
    return contexts_.at(found->second);
}

// Connections that the program has not heard of go with their listener.
std::uint32_t Ucma::destroy_context(std::uint32_t number) {
    UcmaContext& context = contexts_.at(number);
    if (context.id) {
        by_id_.erase(*context.id);
        rdma_cm_.destroy(*context.id);
    }
    std::vector<std::uint32_t> unheard_of;
    for (const std::uint64_t event : context.events) {
        if (const auto& made = context.file->events_.at(event).new_context) {
            unheard_of.push_back(*made);
        }
    }
    context.file->drop_events(context.events);
    for (const std::uint32_t made : unheard_of) {
        destroy_context(made);
    }
    for (const std::uint32_t membership : context.memberships) {
        memberships_.erase(membership);
        membership_numbers_.give_back(membership);
    }
    context.file->contexts_.erase(context.place);
    const std::uint32_t reported = context.events_reported;
    contexts_.erase(number);
    context_numbers_.give_back(number);
    return reported;
}

// Its waiting events go along, behind those of the other file, and so do connections that the
// program has not heard of.
void Ucma::move_context(UcmaContext& context, UcmaFile& to) {
    UcmaFile& from = *context.file;
    from.contexts_.erase(context.place);
    context.place = ++last_place_;
    context.file = &to;
    to.contexts_.emplace(context.place, context.number);
    std::set<std::uint64_t> moved;
    for (const std::uint64_t old : context.events) {
        const auto event = from.events_.extract(old);
        const std::uint64_t number = ++last_event_;
        to.events_.emplace(number, event.mapped());
        moved.insert(number);
        if (event.mapped().new_context) {
            move_context(contexts_.at(*event.mapped().new_context), to);
        }
    }
    context.events = std::move(moved);
}

// The program hears of a new connection only after it has accepted it, which gives the uid. The
// rdma_cm id of a device that goes is destroyed after this event.
void Ucma::rdma_event(RdmaId& id, const RdmaEvent& event) {
    UcmaContext& context = context_of(id);
    if (context.uid != 0) {
        UcmaEvent waiting{.response = to_user(event, id.qp_type() == QpType::kUd),
                          .context = context.number};
        waiting.response.uid = context.uid;
        waiting.response.id = context.number;
        if (event.type == RdmaEventType::kMulticastJoin ||
            event.type == RdmaEventType::kMulticastError) {
            waiting.membership = static_cast<std::uint32_t>(event.membership);
            waiting.response.uid = memberships_.at(*waiting.membership).uid;
            waiting.response.id = *waiting.membership;
        }
        static_cast<void>(context.file->queue(waiting));
    }
    if (event.type == RdmaEventType::kDeviceRemoval) {
        by_id_.erase(id.number());
        context.id.reset();
    }
}

bool Ucma::connection_requested(RdmaId& listener, RdmaId& connection, const RdmaEvent& event) {
    UcmaContext& listening = context_of(listener);
    if (listening.backlog == 0) {
        return false;
    }
    UcmaContext* const made = create_context(*listening.file);
    if (made == nullptr) {
        return false;
    }
    UcmaEvent waiting{.response = to_user(event, listener.qp_type() == QpType::kUd),
                      .context = listening.number,
                      .new_context = made->number};
    waiting.response.uid = listening.uid;
    waiting.response.id = made->number;
    if (!listening.file->queue(waiting)) {
        destroy_context(made->number);
        return false;
    }
    --listening.backlog;
    made->id = connection.number();
    by_id_.emplace(connection.number(), made->number);
    return true;
}

}  // namespace simverbs::rdma_cm
