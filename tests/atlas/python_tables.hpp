// The modules of the Python package that are made from the tables: data, and a function an action.
#pragma once

#include <string>

namespace simverbs::atlas {

// simverbs/python/tables.py: actions, triggers, words and settings.
std::string print_python_tables();
// simverbs/python/packet_faults.py: faults on packets, work requests and calls that match.
std::string print_python_packet_faults();
// simverbs/python/fabric_faults.py: faults on links, ports, nodes, devices and their objects.
std::string print_python_fabric_faults();

}  // namespace simverbs::atlas
