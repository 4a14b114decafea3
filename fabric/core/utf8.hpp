// Tells text in UTF-8 (RFC 3629) from other bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace fabric {

// Returns the length of the UTF-8 sequence (RFC 3629, section 4) that `text`, which is not empty,
// begins with; 0: it is none.
inline std::size_t utf8_sequence(std::string_view text) {
    struct Form {
        unsigned char first_low, first_high;    // of the first byte
        unsigned char second_low, second_high;  // of the second; any other is 80..BF
        std::size_t length;
    };
    static constexpr Form kForms[] = {
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    for (const Form& form : kForms) {
        if (byte(0) < form.first_low || byte(0) > form.first_high || text.size() < form.length) {
            continue;
        }
        bool fits = form.length == 1 || (byte(1) >= form.second_low && byte(1) <= form.second_high);
        for (std::size_t i = 2; i < form.length; ++i) {
            fits = fits && byte(i) >= 0x80 && byte(i) <= 0xBF;
        }
        return fits ? form.length : 0;
    }
    return 0;
}

}  // namespace fabric
