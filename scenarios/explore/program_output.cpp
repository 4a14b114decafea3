#include "scenarios/explore/program_output.hpp"

#include <sstream>

namespace scenarios {

std::string line_with(const std::string& output, std::string_view word) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (line.find(word) != std::string::npos) {
            return line;
        }
    }
    return "";
}

std::string telling_line(const std::string& output) {
    for (const std::string_view word :
         {"SUMMARY: ", "runtime error: ", ": Failure", "Assertion ", "terminate called"}) {
        if (std::string line = line_with(output, word); !line.empty()) {
            return line;
        }
    }
    return "";
}

bool is_of_sanitizer(std::string_view line) {
    const std::size_t summary = line.find("SUMMARY: ");
    return (summary != std::string_view::npos &&
            line.find("Sanitizer: ", summary) != std::string_view::npos) ||
           line.find("runtime error: ") != std::string_view::npos;
}

std::string last_line(const std::string& output) {
    std::istringstream lines(output);
    std::string last;
    std::string last_of_library;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) {
            (line.starts_with("simverbs: ") ? last_of_library : last) = std::move(line);
        }
    }
    return last.empty() ? last_of_library : last;
}

}  // namespace scenarios
