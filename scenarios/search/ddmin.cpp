#include "scenarios/search/ddmin.hpp"

#include <algorithm>

namespace scenarios {

Kept ddmin(std::size_t count, const std::function<bool(const Kept&)>& fails) {
    std::vector<std::size_t> left(count);  // what is still there
    for (std::size_t i = 0; i < count; ++i) {
        left[i] = i;
    }
    const auto kept = [count](const std::vector<std::size_t>& things) {
        Kept which(count, false);
        for (const std::size_t thing : things) {
            which[thing] = true;
        }
        return which;
    };
    std::size_t parts = 1;  // at first: without any of them
    while (!left.empty()) {
        const std::size_t size = (left.size() + parts - 1) / parts;
        bool smaller = false;
        for (std::size_t begin = 0; begin < left.size() && !smaller; begin += size) {
            const auto from = left.begin() + static_cast<std::ptrdiff_t>(begin);
            const auto to =
                left.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, left.size()));
            std::vector<std::size_t> rest(left.begin(), from);
            rest.insert(rest.end(), to, left.end());
            if (fails(kept(rest))) {
                left = rest;
                smaller = true;
            }
        }
        if (smaller) {
            parts = std::max<std::size_t>(parts - 1, 1);
        } else if (size == 1) {
            break;
        } else {
            parts = std::min(parts * 2, left.size());
        }
    }
    return kept(left);
}

}  // namespace scenarios
