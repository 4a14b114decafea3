// The members of a struct simverbs_fault that say what matches, what the target is and with which
// values, by their names in kFaultMembers.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "simverbs/simverbs.h"

namespace simverbs {

// The number of a C enumeration that a program filled in, which may be none of its values.
template <class E>
int number_of(const E& value) {
    int number = 0;
    static_assert(sizeof value == sizeof number);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

inline bool is_given(const char* name) {
    return name != nullptr && *name != '\0';
}

struct GivenMember {
    std::string_view name;
    std::uint64_t value;  // 0: not given; text that is given is 1
};
inline std::array<GivenMember, 30> given_members(const simverbs_fault& fault) {
    const simverbs_fault_match& match = fault.match;
    const simverbs_fault_target& target = fault.target;
    const simverbs_fault_arguments& with = fault.with;
    const auto text = [](const char* name) { return std::uint64_t{is_given(name)}; };
    const auto number = [](const auto& value) { return static_cast<std::uint64_t>(value); };
    return {{{"match.link", text(match.link)},
             {"match.transmitter", text(match.transmitter)},
             {"match.from", text(match.from)},
             {"match.to", text(match.to)},
             {"match.opcode", text(match.opcode)},
             {"match.direction", number(number_of(match.direction))},
             {"match.qp_num", match.qp_num},
             {"match.qp", match.qp},
             {"match.psn", match.psn},
             {"match.attempt", match.attempt},
             {"match.node", text(match.node)},
             {"match.queue", number(number_of(match.queue))},
             {"match.call", text(match.call)},
             {"target.link", text(target.link)},
             {"target.node", text(target.node)},
             {"target.port", target.port},
             {"target.qp_num", target.qp_num},
             {"target.qp", target.qp},
             {"target.queue", number(number_of(target.queue))},
             {"target.object", target.object},
             {"target.fault", target.fault},
             {"with.duration_ps", number(with.duration_ps)},
             {"with.interval_ps", number(with.interval_ps)},
             {"with.times", with.times},
             {"with.value", with.value},
             {"with.offset", with.offset},
             {"with.bits", with.bits},
             {"with.field", number(number_of(with.field))},
             {"with.width", with.width},
             {"with.speed", with.speed}}};
}

}  // namespace simverbs
