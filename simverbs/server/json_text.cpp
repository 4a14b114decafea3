#include "simverbs/server/json_text.hpp"

#include "fabric/trace/json_lines_sink.hpp"

namespace simverbs {

void JsonText::begin_value() {
    if (needs_comma_) {
        text_ += ',';
    }
    needs_comma_ = true;
}

void JsonText::open(char bracket) {
    begin_value();
    text_ += bracket;
    needs_comma_ = false;
}

void JsonText::close(char bracket) {
    text_ += bracket;
    needs_comma_ = true;
}

void JsonText::key(std::string_view name) {
    begin_value();
    fabric::trace::append_json_string(text_, name);
    text_ += ':';
    needs_comma_ = false;
}

void JsonText::add(std::string_view text) {
    begin_value();
    fabric::trace::append_json_string(text_, text);
}

void JsonText::add(std::uint64_t number) {
    add_word(std::to_string(number));
}

void JsonText::add_word(std::string_view word) {
    begin_value();
    text_ += word;
}

}  // namespace simverbs
