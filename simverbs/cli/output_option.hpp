// The option -o of every command that writes one file: "-" is standard output, as without it.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace simverbs::cli {

// `file` is empty where the text goes to standard output.
inline CLI::Option* add_output(CLI::App& command, std::string& file, const std::string& help) {
    return command
        .add_option_function<std::string>(
            "-o,--output", [&file](const std::string& name) { file = name == "-" ? "" : name; },
            help)
        ->type_name("FILE")
        ->default_str("standard output");
}

}  // namespace simverbs::cli
