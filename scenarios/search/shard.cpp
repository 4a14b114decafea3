#include "scenarios/search/shard.hpp"

#include <charconv>

#include <fmt/core.h>

namespace scenarios {

namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, status] = std::from_chars(text.data(), end, number);
    return status == std::errc{} && stopped == end ? std::optional(number) : std::nullopt;
}

// A variable that must be a number.
fabric::Outcome<std::uint64_t> read(const Variables& variables, const char* name,
                                    std::string_view otherwise) {
    const char* const said = variables(name);
    const std::string_view text = said == nullptr ? otherwise : said;
    const auto number = number_of(text);
    if (!number) {
        return fabric::Failure(fmt::format(
            "{}='{}': expected a number; or say which part with --shard I/N", name, text));
    }
    return *number;
}

fabric::Outcome<Shard> rank_of_mpi(const Variables& variables) {
    if (variables("OMPI_COMM_WORLD_RANK") == nullptr) {
        return Shard{};
    }
    const auto rank = read(variables, "OMPI_COMM_WORLD_RANK", "");
    const auto size = read(variables, "OMPI_COMM_WORLD_SIZE", "");
    if (!rank || !size) {
        return fabric::Failure((size ? rank : size).error());
    }
    if (*rank >= *size) {
        return fabric::Failure(fmt::format(
            "OMPI_COMM_WORLD_RANK={} is none of OMPI_COMM_WORLD_SIZE={} ranks", *rank, *size));
    }
    return Shard{*rank, *size};
}

fabric::Outcome<Shard> task_of_slurm(const Variables& variables) {
    if (variables("SLURM_ARRAY_TASK_ID") == nullptr) {
        return Shard{};
    }
    const auto id = read(variables, "SLURM_ARRAY_TASK_ID", "");
    const auto count = read(variables, "SLURM_ARRAY_TASK_COUNT", "");
    const auto least = read(variables, "SLURM_ARRAY_TASK_MIN", "0");
    const auto step = read(variables, "SLURM_ARRAY_TASK_STEP", "1");
    for (const auto* const each : {&step, &least, &count, &id}) {
        if (!*each) {
            return fabric::Failure(each->error());
        }
    }
    const bool regular = *step > 0 && *id >= *least && (*id - *least) % *step == 0;
    if (!regular || (*id - *least) / *step >= *count) {
        return fabric::Failure(fmt::format(
            "SLURM_ARRAY_TASK_ID={} is none of {} tasks from {} in steps of {}: an array with "
            "gaps needs --shard I/N",
            *id, *count, *least, *step));
    }
    return Shard{(*id - *least) / *step, *count};
}

}  // namespace

std::optional<Shard> parse_shard(std::string_view text) {
    const std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
        return std::nullopt;
    }
    const auto index = number_of(text.substr(0, slash));
    const auto count = number_of(text.substr(slash + 1));
    if (!index || !count || *index >= *count) {
        return std::nullopt;
    }
    return Shard{*index, *count};
}

fabric::Outcome<Shard> shard_of_environment(const Variables& variables) {
    const auto rank = rank_of_mpi(variables);
    const auto task = task_of_slurm(variables);
    if (!rank || !task) {
        return task ? rank : task;
    }
    return Shard{task->index * rank->count + rank->index, task->count * rank->count};
}

}  // namespace scenarios
