#include "scenarios/explore/subject.hpp"

#include <fmt/core.h>

namespace scenarios {

std::string fault_name(std::size_t index) {
    return fmt::format("choice{}", index + 1);
}

std::string fault_text(const Branch& branch, std::size_t index) {
    return fmt::format("{{name: {}, {}}}", fault_name(index), branch.choices[index].fault);
}

std::string observer_text() {
    return fmt::format("{{name: {}, action: mark, when: {{on: packet, count: every}}}}", kObserver);
}

}  // namespace scenarios
