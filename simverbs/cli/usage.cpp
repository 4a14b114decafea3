#include "simverbs/cli/usage.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/core/nearest.hpp"

namespace simverbs::cli {
namespace {

// The innermost command that was named, and the words that lead to it.
struct Chosen {
    const CLI::App* command;
    std::string words;
};

Chosen chosen_by(const CLI::App& app) {
    Chosen chosen{&app, ""};
    for (auto below = app.get_subcommands(); !below.empty();
         below = chosen.command->get_subcommands()) {
        const std::string& name = below.front()->get_name();
        chosen = {below.front(), chosen.words.empty() ? name : chosen.words + " " + name};
    }
    return chosen;
}

std::vector<std::string> commands_of(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* const each :
         command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
        names.push_back(each->get_name());
    }
    return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* const option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    return fabric::suggestion(word, candidates);
}

bool is_of_a_command_below(const CLI::App& command, const std::string& option) {
    const auto below = command.get_subcommands([](const CLI::App* /*each*/) { return true; });
    return std::any_of(below.begin(), below.end(), [&option](const CLI::App* each) {
        return each->get_option_no_throw(option) != nullptr;
    });
}

constexpr std::size_t kDashes = 2;

// Returns true for "--topology" if the command takes a topology as a word of its own.
bool takes_as_word(const CLI::App& command, const std::string& option) {
    const auto words = command.get_options(
        [](const CLI::Option* each) { return each->get_positional() && !each->nonpositional(); });
    return option.size() > kDashes &&
           std::any_of(words.begin(), words.end(), [&option](const CLI::Option* each) {
               return each->get_name(true) == option.substr(kDashes);
           });
}

bool is_option(const std::string& word) {
    return word.size() > 1 && word.starts_with('-');
}

std::string words_of(const CLI::App& command, const std::vector<std::string>& left) {
    const std::vector<std::string> names = commands_of(command);
    const std::string all = fmt::format("; there are: {}", fmt::join(names, ", "));
    if (left.empty()) {
        return fmt::format("a command is required{}", all);
    }
    if (!names.empty() && !is_option(left.front())) {
        const std::string near = suggestion(left.front(), names);
        return fmt::format("no command '{}'{}", left.front(), near.empty() ? all : near);
    }
    const auto option = std::find_if(left.begin(), left.end(), is_option);
    if (option != left.end() && is_of_a_command_below(command, *option)) {
        return fmt::format("a command is required before '{}'{}", *option, all);
    }
    if (option == left.end()) {
        return fmt::format("'{}' is one word too many", left.front());
    }
    if (command.get_option_no_throw(*option) != nullptr) {  // before the command's name
        return fmt::format("'{}' stands behind '{}'", *option, command.get_name());
    }
    return takes_as_word(command, *option)
               ? fmt::format("no option '{}': the {} is given without it", *option,
                             option->substr(kDashes))
               : fmt::format("no option '{}'{}", *option, suggestion(*option, options_of(command)));
}

// CLI11's "--seed: At Most 1 required but received 2" and "--world: 1 required WORLD missing".
std::string describe_count_of_values(std::string_view text) {
    const std::string name(text.substr(0, text.find(": ")));
    if (text.ends_with(" missing")) {
        return fmt::format("{}: its value is missing", name);
    }
    constexpr std::string_view kReceived = "required but received ";
    const std::size_t at = text.rfind(kReceived);
    return at == std::string_view::npos
               ? std::string(text)
               : fmt::format("{}: takes one value and got {}; give it once", name,
                             text.substr(at + kReceived.size()));
}

// CLI11's "Could not convert: --seed = banana".
std::string describe_conversion(const CLI::App& command, std::string_view text) {
    constexpr std::string_view kEquals = " = ";
    const std::size_t begin = text.find(": ");
    const std::size_t equals = text.find(kEquals);
    if (begin == text.npos || equals == text.npos || equals < begin) {
        return std::string(text);
    }
    const std::string name(text.substr(begin + 2, equals - begin - 2));
    const CLI::Option* const option = command.get_option_no_throw(name);
    const std::string type = option == nullptr ? "" : option->get_type_name();
    const std::string_view value = text.substr(equals + kEquals.size());
    if (value.find_first_not_of("0123456789") == value.npos) {
        return fmt::format("{}: {} is too large", name, value);
    }
    return fmt::format("{}: '{}' is no {}", name, value,
                       type == "UINT"    ? "whole number from 0 on"
                       : type == "INT"   ? "whole number"
                       : type == "FLOAT" ? "number"
                                         : "value of this option: a number is wanted");
}

}  // namespace

std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
    const Chosen chosen = chosen_by(app);
    const bool is_of_words = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                             dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const bool is_of_conversion = dynamic_cast<const CLI::ConversionError*>(&error) != nullptr;
    const bool is_of_values = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    const std::vector<std::string> left =
        is_of_words ? app.remaining(true) : std::vector<std::string>();
    const bool lacks_command = is_of_words && chosen.command->get_require_subcommand_min() > 0 &&
                               chosen.command->get_subcommands().empty();
    return fmt::format("{}{}\n(simverbs {}--help says more)",
                       chosen.words.empty() ? "" : chosen.words + ": ",
                       !left.empty() || lacks_command ? words_of(*chosen.command, left)
                       : is_of_conversion ? describe_conversion(*chosen.command, error.what())
                       : is_of_values     ? describe_count_of_values(error.what())
                                          : error.what(),
                       chosen.words.empty() ? "" : chosen.words + " ");
}

}  // namespace simverbs::cli
