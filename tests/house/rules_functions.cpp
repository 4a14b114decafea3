// Functions fit on a screen: at most 70 lines between their braces.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tests/house/rules.hpp"

namespace simverbs::house {

namespace {

constexpr std::size_t kLinesAFunction = 70;

// A brace that is open, and the words before it.
struct Block {
    std::size_t line = 0;
    bool is_function = false;
};

bool begins_with_word(std::string_view text, std::string_view word) {
    return text.starts_with(word) &&
           (text.size() == word.size() || text[word.size()] == ' ' || text[word.size()] == '(');
}

// Returns true if the words before a brace are the head of a function, a test or a lambda.
bool is_head(std::string_view words) {
    constexpr auto kOthers = std::to_array<std::string_view>(
        {"namespace", "class", "struct", "enum", "union", "extern", "if", "else", "for", "while",
         "switch", "do", "try", "return"});
    constexpr std::string_view kBeforeValues = "=,(";
    const bool is_other = std::ranges::any_of(
        kOthers, [words](std::string_view other) { return begins_with_word(words, other); });
    return !words.empty() && !is_other && words.find('(') != std::string_view::npos &&
           kBeforeValues.find(words.back()) == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    const std::size_t end = text.find_last_not_of(' ');
    return begin == std::string_view::npos ? "" : text.substr(begin, end + 1 - begin);
}

// Returns true if the line is a condition of the preprocessor.
bool is_condition(std::string_view line) {
    return line.starts_with("#if") || line.starts_with("#el");
}

void check_file(const SourceFile& file, Violations& found) {
    std::vector<Block> open;
    std::string words;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
        if (is_condition(trimmed(file.code[i]))) {
            continue;
        }
        for (const char c : file.code[i]) {
            if (c == '{') {
                open.push_back({i, is_head(trimmed(words))});
                words.clear();
            } else if (c == '}' && !open.empty()) {
                const std::size_t lines = i - open.back().line;
                if (open.back().is_function && lines > kLinesAFunction + 1) {
                    found.push_back({file.path, open.back().line + 1,
                                     std::to_string(lines - 1) + " lines in a function"});
                }
                open.pop_back();
                words.clear();
            } else if (c == ';') {
                words.clear();
            } else {
                words += c;
            }
        }
        words += ' ';
    }
}

}  // namespace

Violations check_function_size(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        if (file.path.ends_with(".cpp") || file.path.ends_with(".hpp")) {
            check_file(file, found);
        }
    }
    return found;
}

}  // namespace simverbs::house
