#include "fabric/core/xml_text.hpp"

#include <algorithm>
#include <cstddef>

#include "fabric/core/utf8.hpp"

namespace fabric {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// U+FFFE and U+FFFF, and the control characters U+0080 to U+009F.
bool is_refused(std::string_view sequence) {
    return sequence == "\xEF\xBF\xBE" || sequence == "\xEF\xBF\xBF" ||
           (sequence.front() == '\xC2' && static_cast<unsigned char>(sequence.back()) < 0xA0);
}

void append_ascii(std::string& out, char c) {
    constexpr char kDelete = 0x7F;
    switch (c) {
        case '<':
            out += "&lt;";
            break;
        case '>':
            out += "&gt;";
            break;
        case '&':
            out += "&amp;";
            break;
        case '"':
            out += "&quot;";
            break;
        case '\'':
            out += "&#39;";
            break;
        default: {
            const bool is_control = (static_cast<unsigned char>(c) < 0x20 || c == kDelete);
            out += is_control && c != '\n' && c != '\t' ? '?' : c;
        }
    }
}

}  // namespace

std::string xml_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = utf8_sequence(text);
        const std::string_view sequence = text.substr(0, std::max<std::size_t>(length, 1));
        if (length == 0) {
            out += kReplacement;
        } else if (length == 1) {
            append_ascii(out, text.front());
        } else if (is_refused(sequence)) {
            out += '?';
        } else {
            out += sequence;
        }
        text.remove_prefix(sequence.size());
    }
    return out;
}

}  // namespace fabric
