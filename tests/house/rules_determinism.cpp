// Rules against what would let a run depend on anything but the program, the scenario and the seed.
// Looks for words in code, not for meaning: a name in another namespace that is spelled alike is a
// violation too.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "tests/house/rules.hpp"

namespace simverbs::house {

namespace {

using Words = std::span<const std::string_view>;

// Where virtual time rules: no clock, no thread, no environment.
constexpr std::array<std::string_view, 7> kEngines = {
    "fabric/",       "simverbs/model/",  "simverbs/wire/", "simverbs/transport/",
    "simverbs/hca/", "simverbs/faults/", "simverbs/cm/"};
constexpr std::array<std::string_view, 3> kProduct = {"fabric/", "simverbs/", "include/"};

bool is_in(const SourceFile& file, Words folders) {
    return file.is_cpp() &&
           std::ranges::any_of(folders, [&](auto folder) { return file.path.starts_with(folder); });
}

bool is_word_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// `word` as a whole word; a word that ends in '*' matches a beginning, one that starts with '*' an
// end.
bool contains_word(std::string_view line, std::string_view word) {
    const bool open_begin = word.starts_with('*');
    const bool open_end = word.ends_with('*');
    word.remove_prefix(open_begin ? 1 : 0);
    word.remove_suffix(open_end ? 1 : 0);
    for (std::size_t at = line.find(word); at != std::string_view::npos;
         at = line.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        const bool begins = open_begin || at == 0 || !is_word_character(line[at - 1]);
        const bool ends = open_end || end == line.size() || !is_word_character(line[end]);
        if (begins && ends) {
            return true;
        }
    }
    return false;
}

Violations find_words(const SourceTree& tree, Words folders, Words words, std::string_view why) {
    Violations found;
    for (const SourceFile& file : tree) {
        for (std::size_t i = 0; is_in(file, folders) && i < file.code.size(); ++i) {
            if (file.code[i].starts_with("#include")) {
                continue;  // a name of ours, or a type that its use shows
            }
            for (const std::string_view word : words) {
                if (contains_word(file.code[i], word)) {
                    found.push_back({file.path, i + 1, std::string(word).append(": ").append(why)});
                }
            }
        }
    }
    return found;
}

// Names of variables and members declared with an unordered container on one line.
std::set<std::string> hashed_names(const SourceFile& file) {
    std::set<std::string> names;
    for (const std::string& line : file.code) {
        const std::size_t type = line.find("unordered_");
        const std::size_t end = line.rfind('>');
        if (type == std::string::npos || end == std::string::npos || line.starts_with("#")) {
            continue;
        }
        std::size_t begin = line.find_first_not_of(" &", end + 1);
        std::string name;
        while (begin < line.size() && is_word_character(line[begin])) {
            name += line[begin++];
        }
        if (!name.empty()) {
            names.insert(name);
        }
    }
    return names;
}

}  // namespace

Violations check_clocks(const SourceTree& tree) {
    static constexpr std::array<std::string_view, 9> kWords = {
        "system_clock",  "steady_clock", "high_resolution_clock",
        "clock_gettime", "gettimeofday", "sleep_for",
        "sleep_until",   "usleep",       "nanosleep"};
    return find_words(tree, kEngines, kWords, "time is virtual here and comes in as an argument");
}

Violations check_randomness(const SourceTree& tree) {
    static constexpr std::array<std::string_view, 9> kWords = {
        "rand",      "srand",        "drand48",        "random_device",        "mt19937*",
        "getrandom", "minstd_rand*", "*_distribution", "default_random_engine"};
    return find_words(tree, kProduct, kWords, "random numbers come from the named streams of core");
}

Violations check_threads(const SourceTree& tree) {
    static constexpr std::array<std::string_view, 9> kWords = {
        "mutex",        "shared_mutex", "recursive_mutex", "condition_variable*", "std::thread",
        "std::jthread", "pthread_*",    "lock_guard",      "scoped_lock"};
    return find_words(tree, kEngines, kWords,
                      "one thread under the world's lock: no lock of its own");
}

Violations check_environment(const SourceTree& tree) {
    static constexpr std::array<std::string_view, 3> kWords = {"getenv", "secure_getenv", "getpid"};
    return find_words(tree, kEngines, kWords, "engines ask for nothing: settings come in");
}

Violations check_floating_point(const SourceTree& tree) {
    static constexpr std::array<std::string_view, 2> kWords = {"float", "double"};
    return find_words(tree, kEngines, kWords, "integers only: compilers differ in the last bit");
}

Violations check_hash_order(const SourceTree& tree) {
    Violations found;
    for (const SourceFile& file : tree) {
        if (!is_in(file, kProduct)) {
            continue;
        }
        const std::set<std::string> names = hashed_names(file);
        for (std::size_t i = 0; i < file.code.size(); ++i) {
            const std::string& line = file.code[i];
            for (const std::string& name : names) {
                const bool ranged = line.find("for (") != std::string::npos &&
                                    line.find(": " + name + ")") != std::string::npos;
                const bool iterated = contains_word(line, name + ".begin()*") ||
                                      contains_word(line, name + ".cbegin()*");
                if (ranged || iterated) {
                    found.push_back({file.path, i + 1, name + ": a hash map has no order"});
                }
            }
        }
    }
    return found;
}

}  // namespace simverbs::house
