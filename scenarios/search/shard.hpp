// Which part of a search this process does: one of several that run the same command.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/core/outcome.hpp"

namespace scenarios {

// Every `count`-th seed, beginning with the `index`-th, from 0 on.
struct Shard {
    std::uint64_t index = 0;
    std::uint64_t count = 1;

    friend bool operator==(const Shard&, const Shard&) = default;
};

// "0/4"; nothing for what is none.
std::optional<Shard> parse_shard(std::string_view text);

// As std::getenv(), which is the default of who asks.
using Variables = std::function<const char*(const char*)>;

// From OMPI_COMM_WORLD_RANK and _SIZE (mpirun), and SLURM_ARRAY_TASK_ID, _MIN, _STEP and _COUNT
// (Slurm arrays); within a task of an array that calls mpirun, from both. The whole where they are
// not set; fails where they make no sense.
fabric::Outcome<Shard> shard_of_environment(const Variables& variables);

}  // namespace scenarios
