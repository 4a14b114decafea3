// The mistakes that the check of pictures finds, and what it leaves alone.
#include "drawing.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace viz_test {
namespace {

std::vector<std::string> defects_of_shapes(const std::string& shapes) {
    return defects_of(
        read_drawing("<svg width=\"200\" height=\"100\" font-size=\"10\">" + shapes + "</svg>"));
}

TEST(Drawing, WithAGapBetweenTextAndLineIsGood) {
    EXPECT_TRUE(defects_of_shapes("<line x1=\"0\" y1=\"30\" x2=\"200\" y2=\"30\" stroke=\"red\"/>"
                                  "<text x=\"5\" y=\"20\">SEND, PSN 100</text>")
                    .empty());
}

TEST(Drawing, LosesSpacesAtTheEndsOfText) {
    EXPECT_EQ(defects_of_shapes("<text x=\"5\" y=\"20\"> ACCESS_FLAGS</text>"),
              std::vector<std::string>{"'ACCESS_FLAGS' loses a space"});
    EXPECT_TRUE(defects_of_shapes("<text x=\"5\" y=\"20\">&#160;ACCESS_FLAGS</text>").empty());
}

TEST(Drawing, TellsTextThatLiesOnTextOrOnALine) {
    EXPECT_EQ(defects_of_shapes("<text x=\"5\" y=\"20\">first</text>"
                                "<text x=\"15\" y=\"22\">second</text>"),
              std::vector<std::string>{"'second' lies on 'first'"});
    EXPECT_EQ(defects_of_shapes("<g transform=\"translate(0 10)\">"
                                "<path d=\"M0,5 L100,5\" fill=\"none\" stroke=\"red\"/></g>"
                                "<text x=\"5\" y=\"20\">SEND</text>")
                  .size(),
              1U);
}

TEST(Drawing, MayCoverALineBelowText) {
    const std::string line = "<line x1=\"0\" y1=\"17\" x2=\"200\" y2=\"17\" stroke=\"red\"/>";
    const std::string cover = "<rect x=\"3\" y=\"8\" width=\"40\" height=\"18\" fill=\"white\"/>";
    const std::string text = "<text x=\"5\" y=\"20\">SEND</text>";
    EXPECT_TRUE(defects_of_shapes(line + cover + text).empty());
    EXPECT_EQ(defects_of_shapes(cover + line + text).size(), 1U) << "the line is on top";
}

TEST(Drawing, TellsWordsThatRunIntoEachOther) {
    EXPECT_EQ(defects_of_shapes("<text x=\"5\" y=\"20\">RESET</text>"
                                "<text x=\"41\" y=\"20\">never</text>"),
              std::vector<std::string>{"'RESET' touches 'never'"});
    EXPECT_TRUE(defects_of_shapes("<text x=\"5\" y=\"20\">RESET</text>"
                                  "<text x=\"46\" y=\"20\">never</text>")
                    .empty());
    EXPECT_TRUE(defects_of_shapes("<text x=\"5\" y=\"20\">RESET&#160;</text>"
                                  "<text x=\"43\" y=\"20\">never</text>")
                    .empty());
}

// As a label that lies under a legend, between its lines.
TEST(Drawing, TellsTextInTheBoxOfSomethingElse) {
    const std::string legend =
        "<g class=\"node\"><path d=\"M0,0 L150,0 L150,80 L0,80 Z\" fill=\"none\" "
        "stroke=\"gray\"/><text x=\"5\" y=\"20\">down</text></g>";
    EXPECT_EQ(
        defects_of_shapes("<g class=\"node\"><text x=\"5\" y=\"50\">2 links</text></g>" + legend),
        std::vector<std::string>{"'2 links' at 5,52 lies in the box at 0,0 of something else"});
    EXPECT_TRUE(
        defects_of_shapes("<g class=\"node\"><text x=\"5\" y=\"95\">2 links</text></g>" + legend)
            .empty());
}

TEST(Drawing, HasNoBoxThatLiesOnABox) {
    const std::string box = "<rect x=\"10\" y=\"10\" width=\"60\" height=\"40\" stroke=\"red\"/>";
    EXPECT_EQ(defects_of_shapes(box + "<rect x=\"50\" y=\"20\" width=\"60\" height=\"40\" "
                                      "stroke=\"red\"/>")
                  .size(),
              1U);
    EXPECT_TRUE(defects_of_shapes(box + "<rect x=\"20\" y=\"20\" width=\"20\" height=\"20\" "
                                        "stroke=\"red\"/>")
                    .empty())
        << "one within the other";
}

TEST(Drawing, StaysOnItsPage) {
    EXPECT_EQ(defects_of_shapes("<text x=\"190\" y=\"20\">SEND</text>"),
              std::vector<std::string>{"'SEND' leaves the page"});
    EXPECT_EQ(defects_of_shapes("<line x1=\"0\" y1=\"30\" x2=\"240\" y2=\"30\" stroke=\"red\"/>"),
              std::vector<std::string>{"a line from 0,30 leaves the page"});
    EXPECT_EQ(defects_of(read_drawing("<svg width=\"2001px\" height=\"5\"/>")),
              std::vector<std::string>{"2001 pixels wide"});
}

}  // namespace
}  // namespace viz_test
