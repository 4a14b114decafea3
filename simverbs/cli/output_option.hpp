// The option -o of every command that writes one file: "-" is standard output, as without it.
// Checks that files can be written.
#pragma once

#include <filesystem>
#include <fstream>
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

// Leaves the file as it is, or none. For commands that have much to do before they write it.
inline bool can_write(const std::string& file) {
    const bool is_new = !std::filesystem::exists(file);
    const bool can = std::ofstream(file, std::ios::app).good();
    if (can && is_new) {
        std::filesystem::remove(file);
    }
    return can;
}

}  // namespace simverbs::cli
