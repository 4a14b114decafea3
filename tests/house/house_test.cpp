// Runs every house rule on the repository, and shows that each rule sees a planted violation and
// leaves its innocent neighbour alone.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/house/rules.hpp"

namespace simverbs::house {

// GoogleTest finds it by its name.
void PrintTo(const Rule& rule, std::ostream* out);   // NOLINT(readability-identifier-naming)
void PrintTo(const Rule& rule, std::ostream* out) {  // NOLINT(readability-identifier-naming)
    *out << rule.name;
}

namespace {

const SourceTree& repository() {
    static const SourceTree kTree = read_tree(SIMVERBS_SOURCE_ROOT);
    return kTree;
}

struct Exception {
    std::string rule;
    std::string path;
};

// exceptions.txt: RULE PATH WHY.
std::vector<Exception> read_exceptions() {
    std::vector<Exception> exceptions;
    std::ifstream in(SIMVERBS_HOUSE_EXCEPTIONS);
    for (std::string line; std::getline(in, line);) {
        Exception exception;
        std::string why;
        if (!line.starts_with('#') &&
            std::istringstream(line) >> exception.rule >> exception.path >> why) {
            exceptions.push_back(exception);
        }
    }
    return exceptions;
}

struct Planted {
    const char* rule;
    const char* path;
    std::string guilty;
    std::string innocent;  // in the same file
};

std::string lines(std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += "//\n";
    }
    return text;
}

const std::vector<Planted>& planted() {
    static const std::vector<Planted> kPlanted = {
        {"Arrows", "fabric/core/a.hpp", "#include \"fabric/net/frame.hpp\"\n",
         "#include \"fabric/core/b.hpp\"\n"},
        {"Arrows", "fabric/net/a.hpp", "#include \"simverbs/model/psn.hpp\"\n",
         "#include \"fabric/trace/bus.hpp\"\n"},
        {"Arrows", "simverbs/hca/a.cpp", "#include \"simverbs/world/world.hpp\"\n",
         "#include \"fabric/net/frame.hpp\"\n"},
        {"Arrows", "simverbs/transport/a.cpp", "#include <simverbs/simverbs.h>\n",
         "#include <map>\n"},
        {"Arrows", "tutorials/01_first/a.cpp", "#include \"simverbs/world/world.hpp\"\n",
         "#include <simverbs/simverbs.h>\n"},
        {"Arrows", "fabric/elsewhere/a.cpp", "int x;\n", ""},
        {"VerbsHeader", "simverbs/driver/a.cpp", "#include <infiniband/verbs.h>\n",
         "// #include <infiniband/verbs.h>\n"},
        {"Clocks", "fabric/core/a.cpp", "auto t = std::chrono::steady_clock::now();\n",
         "auto steady_clocks = 0;  // not steady_clock\n"},
        {"Randomness", "simverbs/abi/a.cpp", "int x = rand();\n", "int operand(int);\n"},
        {"Randomness", "simverbs/world/a.cpp", "std::uniform_int_distribution<int> d;\n",
         "int x;\n"},
        {"Threads", "fabric/net/a.hpp", "std::mutex m;\n", "int mutexes;\n"},
        {"Threads", "simverbs/hca/a.hpp", "std::lock_guard g(m);\n", "int guard;\n"},
        {"Environment", "simverbs/transport/a.cpp", "auto* x = std::getenv(\"X\");\n",
         "auto x = \"getenv\";\n"},
        {"FloatingPoint", "fabric/net/a.cpp", "double rate = 0;\n", "int doubled = 0;\n"},
        {"HashOrder", "simverbs/hca/a.cpp",
         "std::unordered_map<int, int> keys_;\nfor (auto& [k, v] : keys_) {}\n",
         "std::unordered_map<int, int> keys_;\nkeys_.find(1);\n"},
        {"FileSize", "fabric/core/a.cpp", lines(501), lines(500)},
        {"FunctionSize", "fabric/core/a.cpp", "int f(int a,\n      int b) {\n" + lines(71) + "}\n",
         "int f() {\n" + lines(70) + "}\nstruct S {\n" + lines(71) + "};\n"},
        {"Comments", "fabric/core/a.hpp", "    // Of a frame.\nint f();\n",
         "// Returns the parts\n// Of a frame.\n// Offers nothing.\nint f();\n"},
        {"Comments", "fabric/core/a.hpp", "    // Whether it is empty.\nint f();\n",
         "// Returns true if a frame is\n// What it was.\nint f();\n"},
        {"FunctionSize", "fabric/core/a.hpp", "TEST(A, B) {\n" + lines(71) + "}\n",
         "#if defined(A)\n#endif\nnamespace a {\n" + lines(71) + "}\nint t[] = {\n" + lines(71) +
             "};\n"},
        {"LineWidth", "fabric/core/a.cpp", "//" + std::string(99, 'x') + "\n",
         "//" + std::string(98, 'x') + "\n"},
        {"Names", "fabric/core/string_utils.cpp", "int x;\n", ""},
        {"Names", "simverbs/common/a.cpp", "int x;\n", ""},
        {"Readmes", "fabric/core/a.cpp", "int x;\n", ""},
        {"NamedFiles", "fabric/core/README.md", "| `gone.hpp` | what was there |\n",
         "| `a/b.hpp` | of another folder |\n`gone.hpp` is mentioned only.\n"},
        {"TopFolder", "results.tsv", "1\n", ""},
        {"DeadFiles", "fabric/core/a.cpp", "int x;\n", ""},
        {"Headers", "fabric/core/a.cpp", "#pragma once\n", "// What this models.\n"},
        {"Promises", "fabric/core/a.cpp", std::string("// TO") + "DO: later\n", "// Done.\n"},
        {"Secrets", "a.pem", std::string("-----BEGIN PRIVATE") + " KEY-----\n", "a public key\n"},
    };
    return kPlanted;
}

const Rule& rule_named(std::string_view name) {
    return *std::ranges::find_if(rules(), [&](const Rule& rule) { return rule.name == name; });
}

class HouseRule : public ::testing::TestWithParam<Rule> {};

TEST_P(HouseRule, HoldsInTheRepository) {
    std::vector<Exception> unused = read_exceptions();
    std::erase_if(unused, [&](const Exception& e) { return e.rule != GetParam().name; });
    const std::vector<Exception> exceptions = unused;
    for (const Violation& violation : GetParam().check(repository())) {
        const auto covers = [&](const Exception& e) { return e.path == violation.path; };
        std::erase_if(unused, covers);
        if (std::ranges::none_of(exceptions, covers)) {
            ADD_FAILURE() << violation.path << ':' << violation.line << ": " << violation.message;
        }
    }
    for (const Exception& exception : unused) {
        ADD_FAILURE() << exception.path << " no longer needs its exception";
    }
}

TEST_P(HouseRule, SeesEachPlantedViolation) {
    bool tried = false;
    for (const Planted& plant : planted()) {
        if (plant.rule != std::string_view(GetParam().name)) {
            continue;
        }
        tried = true;
        const SourceTree guilty = {make_file(plant.path, plant.guilty)};
        EXPECT_FALSE(GetParam().check(guilty).empty()) << plant.path << '\n' << plant.guilty;
        if (!plant.innocent.empty()) {
            const SourceTree innocent = {make_file(plant.path, plant.innocent)};
            EXPECT_TRUE(GetParam().check(innocent).empty()) << plant.path << '\n' << plant.innocent;
        }
    }
    EXPECT_TRUE(tried) << "no violation is planted for this rule";
}

INSTANTIATE_TEST_SUITE_P(All, HouseRule, ::testing::ValuesIn(rules().begin(), rules().end()),
                         [](const auto& rule) { return std::string(rule.param.name); });

TEST(HouseTree, IsNotEmpty) {
    EXPECT_GT(repository().size(), 50U);
    EXPECT_TRUE(std::ranges::any_of(repository(), [](const SourceFile& file) {
        return file.path == "simverbs/abi/layout.cpp";
    }));
}

void expect_none(const Violations& found) {
    for (const Violation& violation : found) {
        ADD_FAILURE() << violation.path << ": " << violation.message;
    }
}

TEST(HouseArrows, AreAllUsed) {
    expect_none(find_unused_arrows(repository()));
    const SourceTree one = {make_file("fabric/trace/a.cpp", "#include \"fabric/core/b.hpp\"\n")};
    const Violations found = find_unused_arrows(one);
    const auto is_named = [&found](std::string_view message) {
        return std::ranges::any_of(
            found, [message](const Violation& violation) { return violation.message == message; });
    };
    EXPECT_TRUE(is_named("there is no folder fabric/net"));
    EXPECT_TRUE(is_named("fabric/net does not include fabric/trace"));
    EXPECT_FALSE(is_named("there is no folder fabric/trace"));
    EXPECT_FALSE(is_named("fabric/trace does not include fabric/core"));
}

TEST(HouseArrows, AreWhatReadmesSay) {
    expect_none(find_other_arrows_in_readmes(repository()));
    const auto said = [](const char* text) {
        return find_other_arrows_in_readmes({make_file("fabric/net/README.md", text)}).empty();
    };
    EXPECT_TRUE(said("# net\n\nMay include: `fabric/core`,\n`fabric/trace`. Read `port.hpp`.\n"));
    EXPECT_FALSE(said("# net\n\nMay include: `fabric/core`. And `fabric/trace`.\n"));
    EXPECT_FALSE(said("# net\n\nMay include: `fabric/core`, `fabric/trace`, `fabric/sm`.\n"));
    EXPECT_FALSE(said("# net\n"));
}

TEST(HouseDeadFiles, AFileThatCMakeNamesIsAlive) {
    const SourceTree tree = {make_file("fabric/core/CMakeLists.txt", "add_library(x a.cpp)\n"),
                             make_file("fabric/core/a.cpp", "int x;\n")};
    EXPECT_TRUE(rule_named("DeadFiles").check(tree).empty());
}

TEST(HouseReadmes, AFolderWithAReadmeIsDocumented) {
    const SourceTree tree = {make_file("fabric/core/README.md", "# core\n"),
                             make_file("fabric/core/a.cpp", "int x;\n")};
    EXPECT_TRUE(rule_named("Readmes").check(tree).empty());
}

TEST(HouseReadmes, NameEverySourceOfTheProduct) {
    const auto names_all = [](const char* folder, const char* text) {
        const std::string path = folder;
        return rule_named("NamedFiles")
            .check({make_file(path + "/README.md", text), make_file(path + "/a.cpp", "int x;\n"),
                    make_file(path + "/a.hpp", "int y;\n")})
            .empty();
    };
    EXPECT_TRUE(names_all("fabric/core", "| `a.*` | numbers |\n"));
    EXPECT_TRUE(names_all("fabric/core", "| `a.hpp` | numbers, which `a.cpp` counts |\n"));
    EXPECT_FALSE(names_all("fabric/core", "| `a.hpp` | numbers |\n"));
    EXPECT_TRUE(names_all("tests/core", "| `a.hpp` | numbers |\n"));
}

}  // namespace

}  // namespace simverbs::house
