#include "fabric/core/xml_text.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(XmlText, EscapesWhatMarkupIsMadeOf) {
    EXPECT_EQ(xml_text("a<b>&\"c\" 'd'\n\t"), "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39;\n\t");
}

TEST(XmlText, HasOnlyCharactersOfXml) {
    EXPECT_EQ(xml_text("\x1b[31m\r\x7f"), "?[31m??");
    EXPECT_EQ(xml_text(std::string_view("\0", 1)), "?");
    EXPECT_EQ(xml_text("\xff\xc3"), "\xEF\xBF\xBD\xEF\xBF\xBD");
    EXPECT_EQ(xml_text("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80"),
              "gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80");
    EXPECT_EQ(xml_text("\xEF\xBF\xBF\xC2\x85"), "??");
}

}  // namespace
}  // namespace fabric
