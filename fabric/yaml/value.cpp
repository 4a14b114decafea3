#include "fabric/yaml/value.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "fabric/core/utf8.hpp"
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
