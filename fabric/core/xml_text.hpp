// Writes any bytes as text of XML, HTML and Graphviz' HTML-like labels.
#pragma once

#include <string>
#include <string_view>

namespace fabric {

// Escapes `text` for an element or a quoted attribute. Bytes that are not UTF-8 become U+FFFD.
// Characters that XML 1.0 cannot have, and control characters other than tabs and ends of lines,
// become '?'.
std::string xml_text(std::string_view text);

}  // namespace fabric
