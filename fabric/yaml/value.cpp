#include "fabric/yaml/value.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "fabric/yaml/value_builder.hpp"

namespace fabric::yaml {

void Errors::add(Position position, std::string_view text) {
    if (++count_ <= kMaxLines) {
        lines_.push_back(fmt::format("{}:{}:{}: {}", files_[position.file], position.line,
                                     position.column, text));
    }
}

std::string Errors::text() const {
    std::string all;
    for (const std::string& line : lines_) {
        all += (all.empty() ? "" : "\n") + line;
    }
    if (count_ > kMaxLines) {
        all += fmt::format("\n{}: and {} more", files_.front(), count_ - kMaxLines);
    }
    return all;
}

namespace {

// The length of the UTF-8 sequence (RFC 3629, section 4) that `text` begins with; 0: it is none.
std::size_t utf8_sequence(std::string_view text) {
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

// Refuses documents that are not UTF-8: their text is written as JSON and XML later, which allow
// nothing else. UTF-16 and UTF-32, which yaml-cpp can read, are refused, too.
bool is_utf8(std::string_view text, Errors& errors) {
    Position at{1, 1};
    while (!text.empty()) {
        const std::size_t length = utf8_sequence(text);
        if (length == 0) {
            errors.add(at, fmt::format("the byte {:#04x} is no UTF-8, in which YAML is to be here",
                                       static_cast<unsigned char>(text.front())));
            return false;
        }
        at = text.front() == '\n' ? Position{at.line + 1, 1} : Position{at.line, at.column + 1};
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace

// yaml-cpp throws; nothing of it leaves this function.
std::optional<Value> parse(std::string_view text, Errors& errors) {
    if (!is_utf8(text, errors)) {
        return std::nullopt;
    }
    try {
        std::istringstream in{std::string(text)};
        YAML::Parser parser(in);
        ValueBuilder first(errors);
        if (!parser.HandleNextDocument(first)) {
            return Value{};
        }
        // Where no value can begin the parser makes an empty document and does not go on.
        ValueBuilder second(errors);
        if (parser.HandleNextDocument(second)) {
            errors.add(second.begin(), second.begin() == first.begin()
                                           ? "nothing begins with this character"
                                           : "a second document, or what is no part of the first");
        }
        return errors.empty() ? std::optional(first.take()) : std::nullopt;
    } catch (const YAML::Exception& exception) {
        errors.add(position_of(exception.mark), exception.msg);
        return std::nullopt;
    }
}

std::string quoted_if_needed(std::string_view text) {
    const auto is_plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               c == '_' || c == '.' || c == '/' || c == ':' || c == '-' || c == ' ';
    };
    const auto is_word = [](char c) { return c != ':' && c != '-' && c != ' '; };
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), is_plain) &&
                       is_word(text.front()) && is_word(text.back()) &&
                       text.find(": ") == std::string_view::npos && text != "null" &&
                       text != "Null" && text != "NULL" && text != "---" && text != "...";
    if (plain) {
        return std::string(text);
    }
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

}  // namespace fabric::yaml
