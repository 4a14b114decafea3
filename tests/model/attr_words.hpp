// Reads the words in which the oracles of this folder name queue pair attributes and states.
#pragma once

#include <cctype>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "simverbs/model/qp_transitions.hpp"

namespace simverbs::oracle {

inline QpAttr attr_named(std::string_view name) {
    for (const QpAttrName& row : kQpAttrNames) {
        if (row.name == name) {
            return row.attr;
        }
    }
    throw std::invalid_argument("no attribute " + std::string(name));
}

inline QpAttrs attrs_named(std::string_view words) {
    std::istringstream in{std::string(words)};
    QpAttrs set;
    for (std::string word; in >> word;) {
        set = set | attr_named(word);
    }
    return set;
}

inline QpState state_named(std::string_view name) {
    for (std::size_t i = 0; i < kQpStateNames.size(); ++i) {
        if (kQpStateNames[i] == name) {
            return static_cast<QpState>(i);
        }
    }
    throw std::invalid_argument("no state " + std::string(name));
}

inline constexpr auto kStates =
    std::to_array<QpState>({QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                            QpState::kSqd, QpState::kSqe, QpState::kErr});
inline constexpr auto kServiceList =
    std::to_array<Service>({Service::kRc, Service::kUc, Service::kUd, Service::kXrcIni,
                            Service::kXrcTgt, Service::kRawPacket});

inline std::string edge(Service service, QpState from, QpState to) {
    return std::string(to_string(service)) + ' ' + std::string(to_string(from)) + " to " +
           std::string(to_string(to));
}

}  // namespace simverbs::oracle
