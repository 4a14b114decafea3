// The text of --help.
#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// CLI11's name of types that are numbers from 0 on, and ours of them.
inline constexpr std::string_view kTypesOfNumbers[] = {"UINT", "N", "DURATION"};

// Says of each option one word for its kind of value (FILE, DIR, HOST, N, ...), or the words that
// there are, then what it is, its range, and whether it is required or what holds without it.
class Help final : public CLI::Formatter {
  public:
    std::string make_option(const CLI::Option* option, bool is_positional) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
    std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace simverbs::cli
