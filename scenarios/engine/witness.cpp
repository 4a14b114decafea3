#include "scenarios/engine/witness.hpp"

#include <fmt/core.h>

#include "simverbs/model/statuses.hpp"

#include "scenarios/engine/topology_records.hpp"

namespace scenarios {

Witness::Witness(const Scenario& scenario) {
    records_ = records_of_topology(scenario.topology);
    for (std::string& host : scenario.hosts()) {
        hosts_.insert(std::move(host));
    }
    for (const fabric::NodeSpec& node : scenario.topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca) {
            hosts_.insert(node.name);
        }
    }
    for (const fabric::yaml::Value& clause : scenario.at("expect").at("never").items()) {
        wanted_records_.insert(Checked(clause).text("record"));
    }
}

bool Witness::is_kept(const Record& record) const {
    if (record.category != "packet" || wanted_records_.contains(record.name)) {
        return true;
    }
    return record.name == "frame_dropped" || record.name == "packet_discarded" ||
           record.number("retransmission") != 0 || record.number("syndrome") != 0;
}

void Witness::note_queue_pair(const Record& record, Seen& seen) {
    const auto qpn = static_cast<std::uint32_t>(record.number("qpn"));
    const auto nth = static_cast<std::uint32_t>(seen.nth_of.size() + 1);
    if (record.name == "queue_pair" && seen.nth_of.try_emplace(qpn, nth).second) {
        seen.states[nth] = record.text("state");
    }
    if (record.name == "qp_state") {
        if (const auto known = seen.nth_of.find(qpn); known != seen.nth_of.end()) {
            seen.states[known->second] = record.text("to");
        }
    }
}

std::string Witness::end_of(std::string_view node, std::uint64_t qpn) const {
    const auto seen = nodes_.find(node);
    if (seen == nodes_.end()) {
        return {};
    }
    const auto known = seen->second.nth_of.find(static_cast<std::uint32_t>(qpn));
    return known == seen->second.nth_of.end() ? std::string()
                                              : fmt::format("{}/{}", node, known->second);
}

void Witness::see(Record record) {
    Seen& seen = nodes_[record.node];
    for (std::size_t i = 0; i < kCounters.size(); ++i) {
        seen.counts[i] += scenarios::counted(kCounters[i], record);
    }
    note_queue_pair(record, seen);
    if (record.name == "completion") {
        const std::string end = end_of(record.node, record.number("qpn"));
        completed_.push_back({record.time_ps, end.empty() ? record.node : end,
                              record.number("index"), static_cast<int>(record.number("status")),
                              static_cast<int>(record.number("opcode")),
                              static_cast<std::uint32_t>(record.number("bytes")), 0, 0});
    } else if (record.name == "async_event") {
        const auto event = static_cast<int>(record.number("event"));
        const auto subject = static_cast<std::uint32_t>(record.number("subject"));
        const auto known = seen.nth_of.find(subject);
        const bool of_queue_pair =
            simverbs::kAsyncEvents[static_cast<std::size_t>(event)].subject ==
                simverbs::EventSubject::kQp &&
            known != seen.nth_of.end();
        events_.push_back({record.time_ps, record.node, event,
                           std::to_string(of_queue_pair ? known->second : subject)});
    }
    if (record.name == "rdma_cm_event") {
        cm_events_.push_back({record.time_ps, record.node, static_cast<int>(record.number("event")),
                              static_cast<int>(record.number("status")), ""});
    }
    if (!is_kept(record)) {
        return;
    }
    if (records_.size() < kMostRecords) {
        records_.push_back(std::move(record));
    } else if (broken_.empty()) {
        broken_.push_back({{},
                           record.time_ps,
                           fmt::format("a run of {} records at most", kMostRecords),
                           "it has more: what came later could not be judged"});
    }
}

void Witness::end(std::int64_t now_ps, std::uint64_t digest) {
    now_ = now_ps;
    digest_ = digest;
}

std::uint64_t Witness::counted(const CounterRow& row, std::string_view node) const {
    const auto found = nodes_.find(node);
    return found == nodes_.end()
               ? 0
               : found->second.counts[static_cast<std::size_t>(&row - kCounters.data())];
}

std::string Witness::state_of(std::string_view end) const {
    const auto name = numbered_end(end);
    const auto node = name ? nodes_.find(name->host) : nodes_.end();
    if (node == nodes_.end() || !node->second.states.contains(name->nth)) {
        return "no such queue pair was made";
    }
    return node->second.states.at(name->nth);
}

const Memory* Witness::memory_of(std::string_view /*host*/, std::string_view /*memory*/) const {
    return nullptr;
}

std::optional<QueuePairPlace> Witness::place_of(std::string_view end) const {
    const auto name = numbered_end(end);
    const auto host = name ? hosts_.find(name->host) : hosts_.end();
    if (host == hosts_.end()) {
        return std::nullopt;
    }
    return QueuePairPlace{host->c_str(), 0, name->nth};
}

std::optional<std::uint32_t> Witness::number_of(std::string_view /*host*/, NamedObject /*kind*/,
                                                std::string_view /*name*/) const {
    return std::nullopt;
}

}  // namespace scenarios
