// The names of records that scenarios accept are those of the events in the sources.
#include "scenarios/engine/record_names.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace scenarios {
namespace {

std::set<std::string> names_in(const std::filesystem::path& folder) {
    const std::regex event("EventInfo kInfo\\{\\s*\"([a-z_]+)\"");
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") {
            continue;
        }
        std::ifstream in(entry.path());
        const std::string text(std::istreambuf_iterator<char>(in), {});
        for (std::sregex_iterator found(text.begin(), text.end(), event), end; found != end;
             ++found) {
            names.insert((*found)[1]);
        }
    }
    return names;
}

TEST(RecordNames, AreThoseOfTheEvents) {
    const std::filesystem::path root = SIMVERBS_SOURCE_ROOT;
    std::set<std::string> events = names_in(root / "fabric");
    events.merge(names_in(root / "simverbs"));
    EXPECT_EQ(events, std::set<std::string>(kRecordNames.begin(), kRecordNames.end()));
}

}  // namespace
}  // namespace scenarios
