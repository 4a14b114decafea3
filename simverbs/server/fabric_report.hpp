// Reports on a running fabric, for an operator: nodes, ports, links, counters; as tables or as
// JSON.
#pragma once

#include <string>
#include <vector>

#include "fabric/net/port.hpp"

#include "simverbs/world/simulation.hpp"

namespace simverbs {

// "h0:1".
std::string port_name(const fabric::Port& port);
// "4xHDR".
std::string rate_of(const fabric::Port& port);

struct FabricPart {
    std::vector<const fabric::Node*> nodes;
    std::vector<const fabric::Port*> ports;
    std::vector<const fabric::Link*> links;
};
// Everything; of ports those that have a link, and port 0 of switches that somebody manages.
FabricPart whole_fabric(const fabric::Network& network);
// The ports of a node, in the same sense.
std::vector<const fabric::Port*> ports_of(const fabric::Node& node);

// A table for nodes, ports and links, as far as there are any.
std::string show_fabric(Simulation& simulation, const FabricPart& part, bool as_json);

struct CounterChoice {
    // False: those that are 0 are left out of tables, whose last line tells how many.
    bool with_zeros = false;
    bool of_hardware = false;  // of HCAs, besides those of performance management
    bool as_json = false;
};
std::string show_counters(Simulation& simulation, const std::vector<const fabric::Port*>& ports,
                          const CounterChoice& choice);

// Sets the counters of performance management to 0. False: nobody manages the port (Ethernet).
bool reset_counters(Simulation& simulation, const fabric::Port& port);

}  // namespace simverbs
