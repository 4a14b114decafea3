#include "scenarios/explore/surroundings.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include <fmt/core.h>

namespace scenarios {

namespace {

constexpr std::uint64_t kDefaultTimeout = 14;
constexpr std::uint64_t kDefaultRetries = 7;
constexpr unsigned kMostRetries = 7;  // 3 bits

std::int64_t ack_timeout_ps(std::uint64_t code) {
    return std::int64_t{4'096'000} << code;  // 4.096 us * 2^code (IBA 9.7.6.1.3)
}

// Returns the least value of a key that a connection and its two ends have.
std::uint64_t least_of(Checked connection, std::string_view key, std::uint64_t otherwise) {
    std::uint64_t least = connection.number(key, otherwise);
    for (const auto& [host, end] : connection.at("ends").entries()) {
        least = std::min(least, Checked(end).number(key, least));
    }
    return least;
}

void note_owner(Surroundings& all, const std::string& hca, std::string_view host) {
    if (!host.empty() && host != hca) {
        all.owners.emplace(hca, host);
    }
}

void take_least(std::optional<std::int64_t>& least, std::int64_t value) {
    least = std::min(least.value_or(value), value);
}

// Fills in the hosts, which the names of ends begin with.
void find_hosts(Surroundings& all) {
    for (const std::string& end : all.ends) {
        const std::string host = host_of_end(end);
        if (std::ranges::find(all.hosts, host) == all.hosts.end()) {
            all.hosts.push_back(host);
        }
    }
    std::ranges::sort(all.hosts);
}

}  // namespace

Surroundings surroundings_of(const Scenario& scenario) {
    Surroundings all{.repaired_faults = kMostRetries};
    for (const auto& [name, value] : scenario.at("connections").entries()) {
        const Checked connection(value);
        for (const fabric::yaml::Value& host : connection.at("between").items()) {
            all.ends.push_back(fmt::format("{}/{}", host.text, name.text));
        }
        const std::string type = connection.text("type", "RC");
        const std::uint64_t code = least_of(connection, "timeout", kDefaultTimeout);
        const auto retries =
            static_cast<unsigned>(least_of(connection, "retries", kDefaultRetries));
        const auto rnr_retries =
            static_cast<unsigned>(least_of(connection, "rnr_retries", kDefaultRetries));
        // To have no retries at all is a mistake that one fault shows; to have few is none.
        const bool is_reliable = type == "RC" || type == "XRC";
        const unsigned repaired =
            is_reliable ? std::max(std::min(code == 0 ? 0U : retries, rnr_retries), 1U) : 0U;
        all.repaired_faults = std::min(all.repaired_faults, repaired);
        if (code != 0) {
            take_least(all.ack_timeout_ps, ack_timeout_ps(code));
            take_least(all.patience_ps, ack_timeout_ps(code) * static_cast<std::int64_t>(retries));
        }
    }
    find_hosts(all);
    for (const fabric::NodeSpec& node : scenario.topology.nodes) {
        if (node.kind == fabric::NodeKind::kHca) {
            note_owner(all, node.name, fabric::host_of(node));
        }
    }
    for (const fabric::LinkSpec& link : scenario.topology.links) {
        const auto& [first, last] = std::minmax(link.a.node, link.b.node);
        for (const fabric::LinkEndSpec& end : {link.a, link.b}) {
            if (std::ranges::find(all.hosts, end.node) != all.hosts.end()) {
                all.links.push_back({fmt::format("{}-{}", first, last), end.node});
                if (link.layer == fabric::LinkLayer::kInfiniband) {
                    all.managed.push_back({end.node, end.port.value()});
                }
            }
        }
    }
    return all;
}

Surroundings surroundings_of(std::span<const Record> records) {
    Surroundings all{.repaired_faults = 1};
    std::map<std::string, unsigned> made;  // queue pairs of a host
    bool is_reliable = true;
    for (const Record& record : records) {
        if (record.name == "queue_pair") {
            all.ends.push_back(fmt::format("{}/{}", record.node, ++made[record.node]));
            const std::string_view service = record.text("service");
            is_reliable = is_reliable && (service == "RC" || service.starts_with("XRC"));
        } else if (record.name == "node") {
            note_owner(all, std::string(record.text("label")), record.text("host"));
        }
    }
    if (!is_reliable) {
        all.repaired_faults = 0;
    }
    find_hosts(all);
    for (const Record& record : records) {
        if (record.name == "link" && std::ranges::find(all.hosts, record.node) != all.hosts.end()) {
            all.links.push_back({std::string(record.text("link")), record.node});
            if (record.text("layer") == to_string(fabric::LinkLayer::kInfiniband)) {
                all.managed.push_back({record.node, record.number("port")});
            }
        }
    }
    return all;
}

std::string host_of_end(std::string_view end) {
    return std::string(end.substr(0, end.find('/')));
}

std::string receiver_of(const PacketHit& packet, const Surroundings& surroundings) {
    const std::size_t slash = packet.end.find('/');
    if (packet.is_response || slash == std::string::npos) {
        return host_of_end(packet.end);
    }
    const std::string_view connection = std::string_view(packet.end).substr(slash);
    std::string receiver;
    for (const std::string& end : surroundings.ends) {
        if (end != packet.end && end.ends_with(connection)) {
            if (!receiver.empty()) {
                return "";
            }
            receiver = host_of_end(end);
        }
    }
    return receiver;
}

}  // namespace scenarios
