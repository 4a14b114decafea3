#include "scenarios/explore/subject.hpp"

#include <fmt/core.h>

namespace scenarios {

std::string fault_text(const Branch& branch, std::size_t index) {
    return fmt::format("{{name: choice{}, {}}}", index + 1, branch.choices[index].fault);
}

std::string observer_text() {
    return fmt::format("{{name: {}, action: mark, when: {{on: packet, count: every}}}}", kObserver);
}

}  // namespace scenarios
