// JSON as it is written down, value by value: commas come by themselves.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace simverbs {

class JsonText {
  public:
    // '{' or '[', and their ends.
    void open(char bracket);
    void close(char bracket);
    // Before each value of an object.
    void key(std::string_view name);
    void add(std::string_view text);
    void add(std::uint64_t number);
    void add(std::same_as<bool> auto truth) { add_word(truth ? "true" : "false"); }

    template <class T>
    void member(std::string_view name, const T& value) {
        key(name);
        if constexpr (std::is_same_v<T, bool>) {
            add(value);
        } else if constexpr (std::is_integral_v<T>) {
            add(static_cast<std::uint64_t>(value));
        } else {
            add(std::string_view(value));
        }
    }

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    void begin_value();
    void add_word(std::string_view word);

    std::string text_;
    bool needs_comma_ = false;
};

}  // namespace simverbs
