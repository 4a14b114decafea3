// Reads what a program has printed for the line that says why it failed.
#pragma once

#include <string>
#include <string_view>

namespace scenarios {

// Returns the first line that has the word in it; "": none.
std::string line_with(const std::string& output, std::string_view word);

// Returns the line by which people know a failure: of a sanitizer, an assertion or a test; "":
// none.
std::string telling_line(const std::string& output);

// Returns true if the line is a sanitizer's.
bool is_of_sanitizer(std::string_view line);

// Returns that of the program, or, if it has written nothing, that of the library.
std::string last_line(const std::string& output);

}  // namespace scenarios
