#include "simverbs/cli/help.hpp"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace simverbs::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 26;  // of what is said of a word

// The description of an option's value in CLI11: "TYPE:CHECK:CHECK". Checks without a name are left
// out.
struct Value {
    std::string type;
    std::string words;  // "{a,b}": those that it may be; "" where it may be others
    std::string range;  // "1 to 64"; "" where there is none
};

Value value_of(const CLI::Option& option) {
    Value value;
    const std::string said = option.get_type_name();
    for (std::size_t begin = 0; begin <= said.size();) {
        const std::size_t end = std::min(said.find(':', begin), said.size());
        const std::string part = said.substr(begin, end - begin);
        const std::size_t range = part.find(" in [");
        if (begin == 0) {
            value.type = part;
        } else if (part.starts_with('{')) {
            value.words = part;
        } else if (range != std::string::npos) {
            const std::size_t from = range + 5;
            value.range = part.substr(from, part.size() - 1 - from);
            const std::size_t dash = value.range.find(" - ");
            value.range.replace(dash, 3, " to ");
        }
        begin = end + 1;
    }
    return value;
}

// "  name      text", the text in lines of its own column.
std::string in_columns(const std::string& name, const std::string& text) {
    std::string out = "  " + name;
    std::size_t column = out.size();
    if (column + 2 > kColumn) {
        out += '\n';
        column = 0;
    }
    out.append(kColumn - column, ' ');
    column = kColumn;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(' ', begin), text.size());
        const std::size_t length = end - begin;
        if (column > kColumn && column + 1 + length > kWidth) {
            out += '\n' + std::string(kColumn, ' ');
            column = kColumn;
        } else if (column > kColumn) {
            out += ' ';
            ++column;
        }
        out.append(text, begin, length);
        column += length;
        begin = end + 1;
    }
    return out + '\n';
}

bool takes_many(const CLI::Option& option) {
    return option.get_expected_max() == CLI::detail::expected_max_vector_size;
}

}  // namespace

std::string Help::make_option(const CLI::Option* option, bool is_positional) const {
    return in_columns(make_option_name(option, is_positional) + make_option_opts(option),
                      make_option_desc(option));
}

std::string Help::make_option_opts(const CLI::Option* option) const {
    if (option->get_type_size() == 0) {
        return "";
    }
    const Value value = value_of(*option);
    return fmt::format(" {}{}",
                       !value.words.empty()   ? value.words
                       : value.type == "UINT" ? "N"
                                              : value.type,
                       takes_many(*option) ? " ..." : "");
}

std::string Help::make_option_desc(const CLI::Option* option) const {
    std::string text = option->get_description();
    const Value value = value_of(*option);
    if (!value.range.empty()) {
        text += fmt::format("; {}", value.range);
    }
    if (!option->get_envname().empty()) {
        text += fmt::format(" (else {} of the environment)", option->get_envname());
    }
    for (const CLI::Option* const other : option->get_needs()) {
        text += fmt::format(" (with {})", other->get_name());
    }
    for (const CLI::Option* const other : option->get_excludes()) {
        if (option->get_excludes().size() == 1) {
            text += fmt::format(" (not with {})", other->get_name());
        }
    }
    const std::string by_default = option->get_default_str();
    if (option->get_required()) {
        text += " (required)";
    } else if (option->get_type_size() != 0 && !by_default.empty() && by_default != "[]") {
        text += fmt::format(" (default: {})", by_default);
    }
    return text;
}

std::string Help::make_subcommand(const CLI::App* command) const {
    return in_columns(command->get_display_name(true), command->get_description());
}

}  // namespace simverbs::cli
