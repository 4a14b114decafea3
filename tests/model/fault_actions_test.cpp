// The rows of fault actions, triggers and members, compared with the header that programs read.
#include "simverbs/model/fault_actions.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simverbs/model/fault_values.hpp"

namespace simverbs {
namespace {

// The enumerators of fault.h with that prefix, in lower case and in their order.
std::vector<std::string> enumerators(const std::string& enumeration, const std::string& prefix) {
    std::ifstream in(SIMVERBS_FAULT_HEADER);
    const std::string header(std::istreambuf_iterator<char>(in), {});
    const std::size_t begin = header.find("enum " + enumeration + " {");
    std::string body = header.substr(begin, header.find("};", begin) - begin);
    body = std::regex_replace(body, std::regex(R"(/\*[^]*?\*/)"), "");
    std::vector<std::string> names;
    const std::regex name(prefix + "([A-Z_]+)");
    for (std::sregex_iterator at(body.begin(), body.end(), name), end; at != end; ++at) {
        std::string found = (*at)[1];
        std::ranges::transform(found, found.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        names.push_back(found);
    }
    return names;
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
    std::vector<std::string> names;
    names.reserve(std::size(rows));
    for (const auto& row : rows) {
        names.emplace_back(row.name);
    }
    return names;
}

TEST(FaultActions, AreThoseOfTheHeaderUnderTheirNames) {
    std::vector<std::string> expected = enumerators("simverbs_fault_action", "SIMVERBS_FAULT_");
    ASSERT_EQ(expected.front(), "none");
    expected.erase(expected.begin());
    EXPECT_EQ(names_of(kFaultActions), expected);
    for (std::size_t i = 0; i < kFaultActions.size(); ++i) {
        EXPECT_EQ(static_cast<std::size_t>(kFaultActions[i].action), i + 1);
    }
    EXPECT_EQ(find_fault_action(SIMVERBS_FAULT_NONE), nullptr);
}

TEST(FaultActions, WaitForTheTriggersOfTheHeader) {
    std::vector<std::string> expected = enumerators("simverbs_fault_trigger", "SIMVERBS_ON_");
    ASSERT_EQ(expected.front(), "default");
    expected.erase(expected.begin());
    EXPECT_EQ(names_of(kFaultTriggers), expected);
    for (const FaultSubjectRow& row : kFaultSubjects) {
        EXPECT_NE(find_fault_trigger(row.usual_trigger), nullptr) << row.name;
    }
}

TEST(FaultActions, HaveTheHeadersWordsForValues) {
    EXPECT_EQ(names_of(kHeaderFields), enumerators("simverbs_header_field", "SIMVERBS_HEADER_"));
    EXPECT_EQ(names_of(kFaultNaks), enumerators("simverbs_nak", "SIMVERBS_NAK_"));
    for (const FaultNakRow& row : kFaultNaks) {
        EXPECT_EQ(nak_code(row.nak), row.code);
    }
}

TEST(FaultActions, ReadAMemberInOneMeaningOnly) {
    for (const FaultActionRow& row : kFaultActions) {
        EXPECT_FALSE(row.needs.intersects(row.takes)) << row.name;
        const FaultMembers read = row.needs | row.takes | row_of(row.subject).reads;
        for (const FaultMemberRow& member : kFaultMembers) {
            EXPECT_LE((read & members_named(member.name)).size(), 1U)
                << row.name << " " << member.name;
        }
    }
}

TEST(FaultMembers, HaveARowEach) {
    FaultMembers known;
    for (const FaultMemberRow& row : kFaultMembers) {
        EXPECT_FALSE(known.contains(row.member)) << row.name;
        EXPECT_EQ(row.range.empty(),
                  row.least == 0 && row.most == std::numeric_limits<std::uint64_t>::max())
            << row.name;
        known = known | row.member;
    }
    for (const FaultTriggerRow& row : kFaultTriggers) {
        EXPECT_TRUE(known.contains(row.reads)) << row.name;
    }
    for (const FaultSubjectRow& row : kFaultSubjects) {
        EXPECT_TRUE(known.contains(row.reads)) << row.name;
    }
    for (const FaultActionRow& row : kFaultActions) {
        EXPECT_TRUE(known.contains(row.needs | row.takes)) << row.name;
    }
}

}  // namespace
}  // namespace simverbs
