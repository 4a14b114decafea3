// The settings of a world, one row each: their names in the environment, on command lines and in
// scenarios, their values, default and meaning. Whoever reads a setting, --help, errors, the schema
// of scenarios and the manual take them from here.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "fabric/net/routing_engine.hpp"

#include "simverbs/model/personalities.hpp"
#include "simverbs/model/psn.hpp"

namespace simverbs {

enum class Setting : std::uint8_t {
    kTopology,
    kPersonality,
    kRouting,
    kSeed,
    kFirstPsn,
    kFirstQpn,
    kKeys,
    kSm,
    kSchedule,
    kOrder,
    kSpinMs,
    kHelperThread,
    kMemlock,
    kScenario,
    kTrace,
    kTraceFlush,
    kPcap,
    kDigest,
    kSummary,
    kCoverage,
    kWarn,
    kHost,
    kServer,
    kDevices,
};

enum class SettingKind : std::uint8_t {
    kText,
    kNumber,  // from 0 to `most`, decimal or hexadecimal with 0x
    kWord,    // one of `words`
    kBytes,   // a number of bytes, or one of `words`
    kSwitch,  // 1 is on, 0 is off
    kFile,
    kFolder,
};

// Who takes a setting from the environment.
enum class SettingScope : std::uint8_t {
    kWorld,       // embedded worlds; a scenario that makes its world ignores it
    kOutput,      // the same: where a run leaves what it recorded
    kEverywhere,  // scenarios and served worlds, too: it watches a run and changes nothing
    kProgram,     // programs, embedded or served
    kPlace,       // programs of a served world; `simverbs run` and `simverbs on` set it
};

struct SettingRow {
    Setting setting;
    std::string_view variable;
    std::string_view option{};  // of `simverbs up` and `simverbs run`; empty: none
    std::string_view key{};     // in `run:` of a scenario; empty: none
    SettingScope scope;
    SettingKind kind = SettingKind::kText;
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::span<const std::string_view> words{};
    std::size_t embedded_words = 0;     // the last of `words`, which embedded worlds alone have
    std::string_view by_default{};      // empty: none
    std::string_view served_default{};  // where it differs
    std::string_view meaning;
    std::string_view details{};  // further sentences for the manual, in Markdown
};

namespace detail {
inline constexpr auto kPersonalityWords = [] {
    std::array<std::string_view, kPersonalities.size()> words{};
    std::ranges::transform(kPersonalities, words.begin(), &Personality::name);
    return words;
}();
inline constexpr auto kKeyWords = std::to_array<std::string_view>({"sequential", "random"});
inline constexpr auto kSmWords = std::to_array<std::string_view>({"startup", "sweep", "none"});
inline constexpr auto kScheduleWords =
    std::to_array<std::string_view>({"canonical", "free", "serial"});
inline constexpr auto kHelperWords = std::to_array<std::string_view>({"on", "off"});
inline constexpr auto kMemlockWords = std::to_array<std::string_view>({"rlimit"});
inline constexpr std::uint64_t kLow16Bits = 0xFFFF;
inline constexpr std::uint64_t kHourInMs = 3'600'000;
}  // namespace detail

inline constexpr auto kSettings = std::to_array<SettingRow>({
    {.setting = Setting::kTopology,
     .variable = "SIMVERBS_TOPOLOGY",
     .scope = SettingScope::kWorld,
     .by_default = "star:2",
     .meaning = "the fabric: a generator, or the path of a topology file",
     .details = "Generators are `pair`, `star:N`, `ring:N`, `fat-tree:K`, `fat-tree2:LxS[xH]`, "
                "`torus:AxB[xC]`, `dragonfly:a=A,p=P,h=H`, on Ethernet with `eth-` before it; "
                "`vpi-pair` has both, two ports a host. A path has a `/` or a `.`: a `.yaml` file "
                "has the keys of simverbs-topology(5), any other is text as `ibnetdiscover` "
                "prints it."},
    {.setting = Setting::kPersonality,
     .variable = "SIMVERBS_PERSONALITY",
     .option = "--personality",
     .key = "personality",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = detail::kPersonalityWords,
     .by_default = "spec",
     .meaning = "device that HCAs resemble where devices differ"},
    {.setting = Setting::kRouting,
     .variable = "SIMVERBS_ROUTING",
     .option = "--routing",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = fabric::kRoutingEngineNames,
     .meaning = "routes of InfiniBand",
     .details = "`auto` is fat-tree where the graph is one, else min-hop if it has no credit "
                "loop, else up-down. Without the setting, what the topology says (`routing:`), "
                "else `auto`."},
    {.setting = Setting::kSeed,
     .variable = "SIMVERBS_SEED",
     .option = "--seed",
     .key = "seed",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kNumber,
     .by_default = "1",
     .meaning = "seed of every random decision"},
    {.setting = Setting::kFirstPsn,
     .variable = "SIMVERBS_FIRST_PSN",
     .option = "--first-psn",
     .key = "first_psn",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kNumber,
     .most = Psn::kModulus - 1,
     .by_default = "0",
     .meaning = "PSN in packets of what programs call PSN 0",
     .details = "With 16777208, PSNs wrap after eight packets."},
    {.setting = Setting::kFirstQpn,
     .variable = "SIMVERBS_FIRST_QPN",
     .option = "--first-qpn",
     .key = "first_qpn",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kNumber,
     .most = detail::kLow16Bits,
     .by_default = "1",
     .meaning = "low 16 bits of the first queue pair number of a context",
     .details = "Each device begins 256 higher than the one before. With 65535, numbers of the "
                "first device wrap at the second queue pair."},
    {.setting = Setting::kKeys,
     .variable = "SIMVERBS_KEYS",
     .option = "--keys",
     .key = "keys",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = detail::kKeyWords,
     .by_default = "sequential",
     .meaning = "order in which keys of memory regions are given out",
     .details = "Random keys follow the seed."},
    {.setting = Setting::kSm,
     .variable = "SIMVERBS_SM",
     .option = "--sm",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = detail::kSmWords,
     .by_default = "startup",
     .served_default = "sweep",
     .meaning = "what brings InfiniBand ports up",
     .details = "`startup`: at once; `sweep`: a subnet manager, by datagrams through the "
                "fabric; `none`: whatever is started there, OpenSM say."},
    {.setting = Setting::kSchedule,
     .variable = "SIMVERBS_SCHEDULE",
     .option = "--schedule",
     .key = "schedule",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = detail::kScheduleWords,
     .embedded_words = 1,
     .by_default = "canonical",
     .served_default = "free",
     .meaning = "who moves time",
     .details = "`canonical` repeats itself exactly; `free` is for programs that talk to each "
                "other outside of verbs; `serial` (embedded worlds alone) runs one thread at a "
                "time, for debugging."},
    {.setting = Setting::kOrder,
     .variable = "SIMVERBS_ORDER",
     .key = "order",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kNumber,
     .meaning = "number of an order of threads, which take turns",
     .details = "Each number is another order: which thread goes on where several can, and "
                "whether time moves first. Threads run one at a time, from one verb to the next, "
                "as `simverbs explore` runs them. Embedded worlds alone, and no SIMVERBS_SCHEDULE "
                "but `serial`."},
    {.setting = Setting::kSpinMs,
     .variable = "SIMVERBS_SPIN_MS",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kNumber,
     .most = detail::kHourInMs,
     .by_default = "500",
     .meaning = "CPU time in milliseconds (wall time of one that yields at each turn) after "
                "which a thread that watches memory counts as waiting; 0: never"},
    {.setting = Setting::kHelperThread,
     .variable = "SIMVERBS_HELPER_THREAD",
     .scope = SettingScope::kWorld,
     .kind = SettingKind::kWord,
     .words = detail::kHelperWords,
     .by_default = "on",
     .meaning = "a thread of the library that moves time while no thread of the program is in a "
                "verb",
     .details = "`off` is for programs of one thread: only polls, blocking verbs and the functions "
                "of simverbs.h move time then, and the process has no thread but its own. A "
                "program that sleeps in epoll_wait(2) until an event comes, or watches memory for "
                "a peer's WRITE, waits for ever, and neither SIGUSR2 nor SIMVERBS_WARN tells "
                "where. Once a second thread calls verbs, it is as with `on`. Embedded worlds "
                "alone."},
    {.setting = Setting::kMemlock,
     .variable = "SIMVERBS_MEMLOCK",
     .scope = SettingScope::kProgram,
     .kind = SettingKind::kBytes,
     .words = detail::kMemlockWords,
     .meaning = "bytes of memory that a process may register at once",
     .details = "Counted in pages; ENOMEM beyond. `rlimit` is the process's RLIMIT_MEMLOCK "
                "(`ulimit -l`), which devices apply to users other than root, and simverbs to "
                "root too. Without the setting there is no limit."},
    {.setting = Setting::kScenario,
     .variable = "SIMVERBS_SCENARIO",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kFile,
     .meaning = "scenario around an embedded program: its fabric, its faults, and what to "
                "expect",
     .details = "The program exits with status 1 where that does not hold."},
    {.setting = Setting::kTrace,
     .variable = "SIMVERBS_TRACE",
     .option = "--trace",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kFile,
     .meaning = "write every event to FILE (JSON Lines)",
     .details = "In the variable, `%n` in the name of the file is 1 for the first world of the "
                "process, 2 for the next, and `%p` is the number of the process: programs that "
                "run side by side want files of their own."},
    {.setting = Setting::kTraceFlush,
     .variable = "SIMVERBS_TRACE_FLUSH",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kSwitch,
     .by_default = "0",
     .meaning = "write each event of the trace at once",
     .details = "A program that crashes leaves what led to it; slower."},
    {.setting = Setting::kPcap,
     .variable = "SIMVERBS_PCAP",
     .option = "--pcap",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kFile,
     .meaning = "write every packet to FILE, for Wireshark (pcapng)",
     .details = "`%n` and `%p` as for the trace."},
    {.setting = Setting::kDigest,
     .variable = "SIMVERBS_DIGEST",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kFile,
     .meaning = "append the run digest of each world, and whether it is deterministic, to FILE"},
    {.setting = Setting::kSummary,
     .variable = "SIMVERBS_SUMMARY",
     .scope = SettingScope::kOutput,
     .kind = SettingKind::kSwitch,
     .by_default = "0",
     .meaning = "print a summary at exit",
     .details = "Virtual time of the last record, run digest, how many records it covers (packets "
                "and names, which a trace file has too, are none of them), whether the run was "
                "deterministic."},
    {.setting = Setting::kCoverage,
     .variable = "SIMVERBS_COVERAGE",
     .option = "--coverage",
     .scope = SettingScope::kEverywhere,
     .kind = SettingKind::kFolder,
     .meaning = "write what of the model is reached to a file of its own in DIR, for simverbs "
                "viz coverage",
     .details = "One file a world of a process."},
    {.setting = Setting::kWarn,
     .variable = "SIMVERBS_WARN",
     .scope = SettingScope::kEverywhere,
     .kind = SettingKind::kSwitch,
     .by_default = "0",
     .meaning = "explain refusals and report mistakes on stderr",
     .details = "Names what is not modelled the first time it is called, why a verb is refused "
                "or what still uses an object that cannot be destroyed, and mistakes that "
                "verbs allow, a line a kind. Reports once a world that goes nowhere: everyone "
                "polls and no event is left, or a million events pass without a call."},
    {.setting = Setting::kHost,
     .variable = "SIMVERBS_HOST",
     .scope = SettingScope::kWorld,
     .meaning = "show the devices of this host alone",
     .details = "`simverbs0`, `simverbs1`, ... are its HCAs in the order of their names. "
                "Without the setting, all hosts' devices."},
    {.setting = Setting::kServer,
     .variable = "SIMVERBS_SERVER",
     .scope = SettingScope::kPlace,
     .kind = SettingKind::kFile,
     .meaning = "socket of the served world that the program belongs to",
     .details = "`simverbs run` and `simverbs on` set it."},
    {.setting = Setting::kDevices,
     .variable = "SIMVERBS_DEVICES",
     .scope = SettingScope::kPlace,
     .kind = SettingKind::kFolder,
     .meaning = "folder of the host's devices, for programs that look into /sys and /dev",
     .details = "`simverbs run` and `simverbs on` set it."},
});

constexpr const SettingRow& row_of(Setting setting) {
    return kSettings[static_cast<std::size_t>(setting)];
}

// Names of simverbs_set() and of scenarios are those of the environment, in lower case.
inline constexpr std::string_view kVariablePrefix = "SIMVERBS_";
constexpr bool is_variable_of(std::string_view variable, std::string_view name, char between) {
    return variable.starts_with(kVariablePrefix) &&
           std::ranges::equal(
               variable.substr(kVariablePrefix.size()), name, [between](char upper, char lower) {
                   return upper == '_' ? lower == between : upper - 'A' == lower - 'a';
               });
}

// "first_psn" of SIMVERBS_FIRST_PSN.
inline std::string name_of(const SettingRow& row) {
    std::string name(row.variable.substr(kVariablePrefix.size()));
    std::ranges::transform(name, name.begin(), [](char letter) {
        return letter == '_' ? letter : static_cast<char>(letter - 'A' + 'a');
    });
    return name;
}

// nullptr: no setting has that name.
constexpr const SettingRow* find_setting(std::string_view name) {
    const auto* const found = std::ranges::find_if(kSettings, [name](const SettingRow& row) {
        return is_variable_of(row.variable, name, '_');
    });
    return found == kSettings.end() ? nullptr : found;
}

// nullopt: not a number, or above `row.most`.
inline std::optional<std::uint64_t> number_of(const SettingRow& row, std::string_view text) {
    constexpr int kDecimal = 10;
    constexpr int kHexadecimal = 16;
    const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if (is_hexadecimal) {
        text.remove_prefix(2);
    }
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, failure] =
        std::from_chars(text.data(), end, number, is_hexadecimal ? kHexadecimal : kDecimal);
    const bool is_one = failure == std::errc() && stopped == end && number <= row.most;
    return is_one ? std::optional(number) : std::nullopt;
}

// The place of a word in `row.words`; nullopt: it is none of them.
constexpr std::optional<std::size_t> place_of(const SettingRow& row, std::string_view text) {
    const auto found = std::ranges::find(row.words, text);
    return found == row.words.end() ? std::nullopt
                                    : std::optional<std::size_t>(found - row.words.begin());
}

constexpr bool is_on(std::string_view text) {
    return text == "1";
}

namespace detail {
constexpr bool is_consistent(const SettingRow& row) {
    constexpr std::string_view kDashes = "--";
    return (row.option.empty() ||
            (row.option.starts_with(kDashes) &&
             is_variable_of(row.variable, row.option.substr(kDashes.size()), '-'))) &&
           (row.key.empty() || is_variable_of(row.variable, row.key, '_')) &&
           (row.kind != SettingKind::kWord ||
            ((row.by_default.empty() || place_of(row, row.by_default)) &&
             (row.served_default.empty() || place_of(row, row.served_default))));
}
constexpr bool settings_are_consistent() {
    for (std::size_t i = 0; i < kSettings.size(); ++i) {
        if (kSettings[i].setting != static_cast<Setting>(i) || !is_consistent(kSettings[i])) {
            return false;
        }
    }
    return kSettings.size() == static_cast<std::size_t>(Setting::kDevices) + 1;
}
static_assert(settings_are_consistent());
}  // namespace detail

}  // namespace simverbs
