#include "well_formed.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <expat.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace viz_test {

using nlohmann::json;

namespace {

constexpr double kRounding = 1e-6;  // us: times are decimal there

using Track = std::pair<int, int>;  // process, thread
using Slice = std::pair<double, double>;

void expect_no_overlap(std::vector<Slice> slices) {
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) {
        EXPECT_LE(slices[i - 1].first + slices[i - 1].second, slices[i].first + kRounding);
    }
}

}  // namespace

std::string xml_error(const std::string& text) {
    XML_Parser parser = XML_ParserCreate(nullptr);
    std::string error;
    if (XML_Parse(parser, text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_ERROR) {
        error = "line " + std::to_string(XML_GetCurrentLineNumber(parser)) + ": " +
                XML_ErrorString(XML_GetErrorCode(parser));
    }
    XML_ParserFree(parser);
    return error;
}

std::vector<std::string> split_svgs(const std::string& pictures) {
    constexpr const char* kBegin = "<?xml";
    std::vector<std::string> all;
    for (std::size_t at = pictures.find(kBegin); at != std::string::npos;) {
        const std::size_t next = pictures.find(kBegin, at + 1);
        all.push_back(pictures.substr(at, next == std::string::npos ? next : next - at));
        at = next;
    }
    return all;
}

TimelineSeen expect_trace_events(const std::string& text) {
    TimelineSeen seen;
    const json timeline = json::parse(text, nullptr, false);
    if (!timeline.is_object() || !timeline.contains("traceEvents") ||
        !timeline["traceEvents"].is_array()) {
        ADD_FAILURE() << "no traceEvents in: " << text.substr(0, 200);
        return seen;
    }
    std::map<Track, std::vector<Slice>> slices;
    std::map<int, int> starts;
    std::map<int, int> ends;
    std::set<Track> named;
    for (const json& event : timeline["traceEvents"]) {
        const std::string phase = event.at("ph");
        const Track track{event.at("pid"), event.at("tid")};
        EXPECT_TRUE(event.at("ts").is_number());
        EXPECT_TRUE(event.at("name").is_string());
        if (phase == "X") {
            EXPECT_GE(event.at("dur").get<double>(), 0);
            slices[track].emplace_back(event["ts"], event["dur"]);
            if (event.at("cat") == "work") {
                ++seen.work[event["name"]];
            }
        } else if (phase == "s") {
            ++starts[event.at("id")];
        } else if (phase == "f") {
            EXPECT_EQ(event.at("bp"), "e");
            ++ends[event.at("id")];
        } else if (phase == "M") {
            EXPECT_TRUE(event.at("args").at("name").is_string());
            if (event["name"] == "thread_name") {
                named.insert(track);
            }
        } else {
            EXPECT_EQ(phase, "i");
            EXPECT_TRUE(event.at("s") == "t" || event.at("s") == "p");
        }
    }
    EXPECT_EQ(starts, ends) << "each arrow has both ends";
    seen.arrows = starts.size();
    for (const auto& [track, of_track] : slices) {
        EXPECT_TRUE(named.contains(track)) << track.first << ", " << track.second;
        expect_no_overlap(of_track);
    }
    return seen;
}

}  // namespace viz_test
