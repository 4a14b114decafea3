// The control API of simverbs.h over the embedded world: check, call, say what was wrong.
#include "simverbs/abi/control.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric/topology/load.hpp"

#include "simverbs/abi/export.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/model/settings.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {

std::string& last_error() {
    thread_local std::string text;
    return text;
}

namespace {

using driver::EmbeddedWorld;

constexpr std::size_t kMaxActorName = 63;
constexpr std::size_t kMaxKeptRecords = 100'000'000;

int fail_in_use(const char* function) {
    return fail(EBUSY,
                "{}: the world exists already; call it before the first use of a device, or after "
                "simverbs_restart()",
                function);
}

// Topologies are looked at here, so that a mistake is told by the call that made it.
int configure(const char* function, const SettingRow& row, std::string_view value) {
    if (const std::string wrong = describe_wrong_value(row, value); !wrong.empty()) {
        return fail(EINVAL, "{}: {}", function, wrong);
    }
    if (row.setting == Setting::kTopology) {
        if (const auto made = fabric::load_topology(value); !made) {
            return fail(EINVAL, "{}: {}", function, made.error());
        }
    }
    const bool is_set =
        Process::current().configure([&row, value](driver::EmbeddedOptions& options) {
            driver::set_embedded(options, row.setting, value);
        });
    return is_set ? 0 : fail_in_use(function);
}

std::vector<std::string> names_of_settings() {
    std::vector<std::string> names;
    for (const SettingRow& row : kSettings) {
        if (row.scope == SettingScope::kWorld) {
            names.push_back(name_of(row));
        }
    }
    return names;
}

}  // namespace

SIMVERBS_ABI int simverbs_set(const char* setting, const char* value) {
    const SettingRow* const row = setting == nullptr ? nullptr : find_setting(setting);
    if (row == nullptr || row->scope != SettingScope::kWorld) {
        return fail(EINVAL, "simverbs_set: '{}' is no setting of a world; those are {}",
                    setting == nullptr ? "NULL" : setting, fmt::join(names_of_settings(), ", "));
    }
    return value == nullptr ? fail(EINVAL, "simverbs_set: {} needs a value, not NULL", setting)
                            : configure("simverbs_set", *row, value);
}

SIMVERBS_ABI int simverbs_set_topology(const char* topology) {
    return configure("simverbs_set_topology", row_of(Setting::kTopology),
                     topology == nullptr ? "" : topology);
}

SIMVERBS_ABI int simverbs_set_seed(uint64_t seed) {
    return configure("simverbs_set_seed", row_of(Setting::kSeed), std::to_string(seed));
}

SIMVERBS_ABI int simverbs_set_first_psn(uint32_t psn) {
    return configure("simverbs_set_first_psn", row_of(Setting::kFirstPsn), std::to_string(psn));
}

SIMVERBS_ABI int simverbs_set_first_qpn(uint32_t low_bits) {
    return configure("simverbs_set_first_qpn", row_of(Setting::kFirstQpn),
                     std::to_string(low_bits));
}

SIMVERBS_ABI int simverbs_set_keys(enum simverbs_keys keys) {
    if (keys != SIMVERBS_KEYS_SEQUENTIAL && keys != SIMVERBS_KEYS_RANDOM) {
        return fail(EINVAL,
                    "simverbs_set_keys: {} is neither SIMVERBS_KEYS_SEQUENTIAL nor "
                    "SIMVERBS_KEYS_RANDOM",
                    static_cast<int>(keys));
    }
    const SettingRow& row = row_of(Setting::kKeys);
    return configure("simverbs_set_keys", row, row.words[keys]);
}

SIMVERBS_ABI int simverbs_set_personality(const char* personality) {
    return configure("simverbs_set_personality", row_of(Setting::kPersonality),
                     personality == nullptr ? "" : personality);
}

SIMVERBS_ABI int simverbs_set_kept_records(size_t records) {
    if (records > kMaxKeptRecords) {
        return fail(EINVAL, "simverbs_set_kept_records: {} records; from 0 to {} can be kept",
                    records, kMaxKeptRecords);
    }
    const bool set = Process::current().configure(
        [records](driver::EmbeddedOptions& options) { options.kept_records = records; });
    return set ? 0 : fail_in_use("simverbs_set_kept_records");
}

SIMVERBS_ABI int simverbs_restart(void) {
    const std::string why = Process::current().restart();
    return why.empty() ? 0 : fail(EBUSY, "simverbs_restart: {}", why);
}

SIMVERBS_ABI unsigned simverbs_close_devices(void) {
    return Process::current().close_devices();
}

SIMVERBS_ABI int simverbs_begin_scenario(const char* path) {
    if (path == nullptr || *path == '\0') {
        return fail(EINVAL, "simverbs_begin_scenario: no path");
    }
    const auto [error, why] = Process::current().begin_scenario(path);
    return error == 0 ? 0 : fail(error, "simverbs_begin_scenario: {}", why);
}

SIMVERBS_ABI int simverbs_end_scenario(const char** report) {
    if (report == nullptr) {
        return fail_without_place("simverbs_end_scenario");
    }
    thread_local std::string told;
    std::string& text = told;
    return in_turn([report, &text](EmbeddedWorld& /*world*/) {
        auto judged = Process::current().end_scenario();
        if (!judged) {
            return fail(ENOENT, "simverbs_end_scenario: no scenario has begun");
        }
        text = std::move(*judged);
        *report = text.c_str();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_allow_misuse(const char* name, int allowed) {
    const std::string_view wanted = name == nullptr ? "" : name;
    const auto* const found =
        std::find_if(kMisuses.begin(), kMisuses.end(),
                     [wanted](const MisuseRow& row) { return row.name == wanted; });
    if (found == kMisuses.end()) {
        std::string names;
        for (const MisuseRow& row : kMisuses) {
            names.append(names.empty() ? "" : ", ").append(row.name);
        }
        return fail(EINVAL, "simverbs_allow_misuse: '{}' is no mistake that is named; those are {}",
                    wanted, names);
    }
    allow_misuse(found->misuse, allowed != 0);
    return 0;
}

SIMVERBS_ABI int simverbs_now_ps(int64_t* now) {
    if (now == nullptr) {
        return fail_without_place("simverbs_now_ps");
    }
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    *now = fabric::to_picoseconds(world->conductor().now());
    return 0;
}

SIMVERBS_ABI int simverbs_advance_ps(int64_t duration) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    const std::int64_t most =
        std::numeric_limits<std::int64_t>::max() - fabric::to_picoseconds(world->conductor().now());
    if (duration < 0 || duration > most) {
        return fail(EINVAL, "simverbs_advance_ps: {} ps; from 0 to {} ps can pass", duration, most);
    }
    world->conductor().advance(fabric::SimDuration(duration));
    return 0;
}

SIMVERBS_ABI int simverbs_step_ps(int64_t most, int* ran) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    if (ran == nullptr) {
        return fail_without_place("simverbs_step_ps");
    }
    if (most < 0) {
        return fail(EINVAL, "simverbs_step_ps: {} ps; time does not go back", most);
    }
    const auto stepped = world->conductor().step_alone(fabric::SimDuration(most));
    if (!stepped) {
        return fail(EBUSY, "simverbs_step_ps: other threads are actors, too; poll instead");
    }
    *ran = *stepped ? 1 : 0;
    return 0;
}

SIMVERBS_ABI void simverbs_set_wait_hook(simverbs_wait_hook wait, void* argument) {
    driver::t_wait_hook = {wait, argument};
}

SIMVERBS_ABI void simverbs_set_host_hook(simverbs_host_hook host, void* argument) {
    driver::t_host_hook = {host, argument};
}

SIMVERBS_ABI int simverbs_actor(const char* name) {
    const std::string_view wanted = name == nullptr ? "" : name;
    if (wanted.empty() || wanted.size() > kMaxActorName) {
        return fail(EINVAL, "simverbs_actor: a name has 1 to {} bytes, not {}", kMaxActorName,
                    wanted.size());
    }
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    return world->conductor().name_current(wanted)
               ? 0
               : fail(EEXIST, "simverbs_actor: another thread is called '{}'", wanted);
}

SIMVERBS_ABI int simverbs_actors(unsigned count) {
    EmbeddedWorld* world = Process::current().embedded();
    if (world == nullptr) {
        return fail_without_world();
    }
    world->conductor().expect_actors(count);
    return 0;
}

SIMVERBS_ABI int simverbs_run_digest(uint64_t* digest) {
    if (digest == nullptr) {
        return fail_without_place("simverbs_run_digest");
    }
    return in_turn([digest](EmbeddedWorld& world) {
        *digest = world.simulation().bus().run_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_packet_digest(uint64_t* digest) {
    if (digest == nullptr) {
        return fail_without_place("simverbs_packet_digest");
    }
    return in_turn([digest](EmbeddedWorld& world) {
        world.simulation().bus().enable_packet_digest();
        *digest = world.simulation().bus().packet_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_is_deterministic(int* deterministic) {
    if (deterministic == nullptr) {
        return fail_without_place("simverbs_is_deterministic");
    }
    return in_turn([deterministic](EmbeddedWorld& world) {
        const RunMarks& marks = world.conductor().marks();
        *deterministic = marks.deterministic() ? 1 : 0;
        if (!marks.deterministic()) {
            last_error() = "simverbs_is_deterministic: " + marks.describe();
        }
        return 0;
    });
}

SIMVERBS_ABI const char* simverbs_last_error(void) {
    return last_error().c_str();
}

}  // namespace simverbs::abi
