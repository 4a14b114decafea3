// The control API of simverbs.h over the embedded world: check, call, say what was wrong.
#include "simverbs/abi/control.hpp"

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
#include "simverbs/abi/process.hpp"
#include "simverbs/model/personalities.hpp"
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

}  // namespace

SIMVERBS_ABI int simverbs_set_topology(const char* topology) {
    const std::string_view wanted = topology == nullptr ? "" : topology;
    if (const fabric::TopologyResult made = fabric::load_topology(wanted); !made.topology) {
        return fail(EINVAL, "simverbs_set_topology: {}", made.error);
    }
    const bool set = Process::current().configure(
        [wanted](driver::EmbeddedOptions& options) { options.simulation.topology = wanted; });
    return set ? 0 : fail_in_use("simverbs_set_topology");
}

SIMVERBS_ABI int simverbs_set_seed(uint64_t seed) {
    const bool set = Process::current().configure(
        [seed](driver::EmbeddedOptions& options) { options.simulation.seed = seed; });
    return set ? 0 : fail_in_use("simverbs_set_seed");
}

SIMVERBS_ABI int simverbs_set_first_psn(uint32_t psn) {
    if (psn > SimulationOptions::kMaxFirstPsn) {
        return fail(EINVAL, "simverbs_set_first_psn: {:#x} is none; they are from 0 to {:#x}", psn,
                    SimulationOptions::kMaxFirstPsn);
    }
    const bool set = Process::current().configure(
        [psn](driver::EmbeddedOptions& options) { options.simulation.first_psn = psn; });
    return set ? 0 : fail_in_use("simverbs_set_first_psn");
}

SIMVERBS_ABI int simverbs_set_first_qpn(uint32_t low_bits) {
    if (low_bits > SimulationOptions::kMaxFirstQpn) {
        return fail(EINVAL, "simverbs_set_first_qpn: {:#x} is more than the low 16 bits", low_bits);
    }
    const bool set = Process::current().configure(
        [low_bits](driver::EmbeddedOptions& options) { options.simulation.first_qpn = low_bits; });
    return set ? 0 : fail_in_use("simverbs_set_first_qpn");
}

SIMVERBS_ABI int simverbs_set_keys(enum simverbs_keys keys) {
    if (keys != SIMVERBS_KEYS_SEQUENTIAL && keys != SIMVERBS_KEYS_RANDOM) {
        return fail(EINVAL,
                    "simverbs_set_keys: {} is neither SIMVERBS_KEYS_SEQUENTIAL nor "
                    "SIMVERBS_KEYS_RANDOM",
                    static_cast<int>(keys));
    }
    const bool random = keys == SIMVERBS_KEYS_RANDOM;
    const bool set = Process::current().configure(
        [random](driver::EmbeddedOptions& options) { options.simulation.random_keys = random; });
    return set ? 0 : fail_in_use("simverbs_set_keys");
}

SIMVERBS_ABI int simverbs_set_personality(const char* personality) {
    const std::string_view wanted = personality == nullptr ? "" : personality;
    if (find_personality(wanted) == nullptr) {
        std::vector<std::string_view> known;
        known.reserve(kPersonalities.size());
        for (const Personality* each : kPersonalities) {
            known.push_back(each->name);
        }
        return fail(EINVAL, "simverbs_set_personality: '{}' is not known; known are {}", wanted,
                    fmt::join(known, ", "));
    }
    const bool set = Process::current().configure(
        [wanted](driver::EmbeddedOptions& options) { options.simulation.personality = wanted; });
    return set ? 0 : fail_in_use("simverbs_set_personality");
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
    return Process::current().restart()
               ? 0
               : fail(EBUSY, "simverbs_restart: a device is open; ibv_close_device() it first");
}

SIMVERBS_ABI int simverbs_now_ps(int64_t* now) {
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
    return in_turn([digest](EmbeddedWorld& world) {
        *digest = world.simulation().bus().run_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_packet_digest(uint64_t* digest) {
    return in_turn([digest](EmbeddedWorld& world) {
        world.simulation().bus().enable_packet_digest();
        *digest = world.simulation().bus().packet_digest();
        return 0;
    });
}

SIMVERBS_ABI int simverbs_is_deterministic(int* deterministic) {
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
