// The fabric and the connections of a run, as far as faults need to know them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/engine/observation.hpp"
#include "scenarios/engine/scenario.hpp"

namespace scenarios {

struct Surroundings {
    struct Link {
        std::string name;  // "h0-s0"
        std::string host;  // at one end of it
    };

    struct Port {
        std::string host;
        std::uint64_t number;
    };

    std::vector<std::string> hosts{};  // that have queue pairs; HCAs, where one has several
    std::map<std::string, std::string> owners{};  // the hosts of such HCAs: h0 of h0.0
    std::vector<Link> links{};                    // of these hosts
    std::vector<Port> managed{};      // by a subnet manager: InfiniBand ports of these hosts
    std::vector<std::string> ends{};  // queue pairs, by their names in scenarios: "h0/c"
    // So many faults of packets every connection must repair; 0: it may lose messages.
    unsigned repaired_faults = 0;
    std::optional<std::int64_t> ack_timeout_ps{};  // the shortest
    std::optional<std::int64_t> patience_ps{};     // of the least patient connection
};

// Returns those that a scenario describes.
Surroundings surroundings_of(const Scenario& scenario);

// Returns those that a trace shows. Queue pairs are called HOST/N there, the N-th of the host. Time
// limits and retries are in no trace: one fault must be repaired.
Surroundings surroundings_of(std::span<const Record> records);

// Returns "h0" of "h0/c".
std::string host_of_end(std::string_view end);

// Returns the host that a packet is for; "": not known, or several.
std::string receiver_of(const PacketHit& packet, const Surroundings& surroundings);

}  // namespace scenarios
