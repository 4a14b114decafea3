// Delta debugging (Zeller, Hildebrandt 2002): of many things the few without which a test comes out
// otherwise. Knows nothing of scenarios.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace scenarios {

// Which of the things are there.
using Kept = std::vector<bool>;

// A subset that still fails, and of which no single thing can be left out, given that all `count`
// of them fail. `fails` must answer alike when asked alike.
Kept ddmin(std::size_t count, const std::function<bool(const Kept&)>& fails);

}  // namespace scenarios
