// Writes any bytes as text of XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace scenarios {

// Escapes `text` for an element or an attribute in double quotes. Bytes that are not UTF-8 become
// U+FFFD. Characters that XML 1.0 cannot have, and control characters other than tabs and ends of
// lines, become '?'.
std::string xml_text(std::string_view text);

}  // namespace scenarios
