// Numbers of things as people read them: "1 packet", "2 packets".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fabric {

// `many` is the plural where an s at the end is none.
inline std::string counted(std::uint64_t count, std::string_view one, std::string_view many = "") {
    std::string text = std::to_string(count) + " ";
    if (count == 1) {
        return text.append(one);
    }
    return many.empty() ? text.append(one).append("s") : text.append(many);
}

}  // namespace fabric
