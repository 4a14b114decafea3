// The hosts of a scenario as judges and faults see them.
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "simverbs/model/qp_transitions.hpp"

#include "scenarios/engine/world.hpp"

namespace scenarios {

const Host* World::host(std::string_view name) const {
    const auto found = hosts_.find(name);
    return found == hosts_.end() ? nullptr : &found->second;
}

const End* World::end(std::string_view name) const {
    const std::size_t slash = std::min(name.find('/'), name.size() - 1);
    const Host* const owner = host(name.substr(0, slash));
    if (owner == nullptr) {
        return nullptr;
    }
    const auto found = owner->ends.find(name.substr(slash + 1));
    return found == owner->ends.end() ? nullptr : &found->second;
}

std::uint64_t World::digest() const {
    std::uint64_t digest = 0;
    simverbs_run_digest(&digest);
    return digest;
}

std::uint64_t World::counted(const CounterRow& row, std::string_view node) const {
    std::uint64_t sum = 0;
    for (const Record& record : records_) {
        sum += record.node == node ? scenarios::counted(row, record) : 0;
    }
    return sum;
}

// As the trace has it: to ask the device would let time pass until the host's programs go on.
std::string World::state_told(const End& end) const {
    std::string state(simverbs::kQpStateNames[IBV_QPS_RESET]);
    for (const Record& record : records_) {
        if (record.name == "qp_state" && record.node == end.host->name &&
            record.number("qpn") == end.qp->qp_num) {
            state = record.text("to");
        }
    }
    return state;
}

std::string World::state_of(std::string_view name) const {
    const End* const found = end(name);
    if (found != nullptr && found->qp != nullptr && found->host->programs_stopped) {
        return state_told(*found);
    }
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const int error = found == nullptr || found->qp == nullptr
                          ? EINVAL
                          : ibv_query_qp(found->qp, &attr, IBV_QP_STATE, &init);
    return error != 0 ? fmt::format("it cannot be asked: {}", std::strerror(error))
                      : std::string(simverbs::kQpStateNames[attr.qp_state]);
}

const Memory* World::memory_of(std::string_view host_name, std::string_view name) const {
    const Host* const owner = host(host_name);
    if (owner == nullptr) {
        return nullptr;
    }
    const auto found = owner->memories.find(name);
    return found == owner->memories.end() ? nullptr : &found->second;
}

std::optional<QueuePairPlace> World::place_of(std::string_view name) const {
    const End* const found = end(name);
    if (found == nullptr || found->qp == nullptr) {
        return std::nullopt;
    }
    return QueuePairPlace{found->host->name.c_str(), found->qp->qp_num, 0};
}

std::string World::end_of(std::string_view node, std::uint64_t qpn) const {
    const auto found = ends_.find({std::string(node), static_cast<std::uint32_t>(qpn)});
    return found == ends_.end() ? std::string() : found->second->name;
}

std::string World::peer_of(std::string_view node, std::uint64_t qpn) const {
    const auto found = ends_.find({std::string(node), static_cast<std::uint32_t>(qpn)});
    return found == ends_.end() || found->second->peer == nullptr ? std::string()
                                                                  : found->second->peer->name;
}

std::optional<std::uint64_t> World::posted_id(std::string_view name, bool is_receive,
                                              std::uint64_t place) const {
    const End* const found = end(name);
    if (found == nullptr || !found->has_ids) {
        return std::nullopt;
    }
    const std::vector<std::uint64_t>& ids = is_receive ? found->ids_received : found->ids_sent;
    return place < ids.size() ? std::optional(ids[place]) : std::nullopt;
}

std::optional<std::uint32_t> World::number_of(std::string_view host_name, NamedObject kind,
                                              std::string_view name) const {
    const Host* const owner = host(host_name);
    const auto look = [&](const auto& objects, auto&& number) -> std::optional<std::uint32_t> {
        const auto found = objects.find(name);
        return found == objects.end() ? std::nullopt : number(found->second);
    };
    if (owner == nullptr) {
        return std::nullopt;
    }
    switch (kind) {
        case NamedObject::kCompletionQueue:
            return look(owner->cqs,
                        [](const CompletionQueue& cq) { return std::optional(cq.cq->handle); });
        case NamedObject::kSharedReceives:
            return look(owner->srqs, [](const SharedReceives& shared) {
                return shared.srq == nullptr ? std::nullopt : std::optional(shared.srq->handle);
            });
        case NamedObject::kMemory:
            break;
    }
    return look(owner->memories, [](const Memory& memory) { return std::optional(memory.lkey); });
}

}  // namespace scenarios
