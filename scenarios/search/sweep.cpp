#include "scenarios/search/sweep.hpp"

#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "fabric/core/assert.hpp"
#include "fabric/core/shell_word.hpp"

#include "scenarios/engine/batch.hpp"
#include "scenarios/engine/compose.hpp"
#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

namespace {

using Clock = std::chrono::steady_clock;

// A world that follows another in its process finds memory that the kernel has provided before.
constexpr std::size_t kSeedsOfProcess = 32;

class Sweep {
  public:
    Sweep(Scenario base, const SweepOptions& options) : base_(std::move(base)), options_(options) {}

    // The scenario as it is must pass before faults are mixed into it.
    fabric::Outcome<void> prepare() {
        if (!options_.swarm) {
            return {};
        }
        const std::optional<Verdict> usual =
            run_apart(base_, options_.runner, options_.seed_limit, [this] { return goes_on({}); });
        if (!usual) {
            return {};  // run() is told the same
        }
        if (!usual->passed()) {
            return fabric::Failure(
                fmt::format("{}: it fails without a swarm of faults: {}", base_.file,
                            usual->error.empty() ? first_failure(*usual).expected : usual->error));
        }
        auto made = Swarm::make(base_, *options_.swarm, usual->time_ps);
        if (!made) {
            return fabric::Failure(base_.file + ": " + made.error());
        }
        swarm_ = std::move(*made);
        return {};
    }

    SweepResult run(const std::function<void(const FailedSeed&)>& found) {
        SweepResult result;
        result.heal_ps = swarm_ ? swarm_->heal_ps() : 0;
        const std::size_t all =
            options_.shard.index >= options_.seeds
                ? 0
                : (options_.seeds - options_.shard.index - 1) / options_.shard.count + 1;
        ProcessPool pool(
            [this](std::size_t seed, ProcessPool::Reached& reached) {
                return to_line(to_json(options_.runner(scenario(seed), {{}, 0, &reached})));
            },
            {options_.jobs, options_.seed_limit, base_.has_processes() ? 1 : kSeedsOfProcess},
            [&](std::int64_t reached) {
                return goes_on({static_cast<std::size_t>(result.run), all, reached});
            });
        const auto begin = Clock::now();
        std::uint64_t next = options_.shard.index;
        result.stopped = options_.swarm && !swarm_;
        while (!result.stopped) {
            while (next < options_.seeds && !pool.is_full() && !is_over(result, begin)) {
                const std::uint64_t seed = options_.first + next;
                next += options_.shard.count;
                pool.start(seed);
            }
            if (pool.is_idle()) {
                break;
            }
            for (const ProcessPool::Done& done : pool.wait()) {
                take(done, result, found);
            }
            result.stopped = pool.is_stopped();
        }
        result.left = all - result.run;
        return result;
    }

  private:
    [[nodiscard]] bool goes_on(const Stage& stage) const {
        return !options_.onlooker || options_.onlooker(stage);
    }

    [[nodiscard]] Scenario scenario(std::uint64_t seed) const {
        if (swarm_) {
            return swarm_->scenario(seed);
        }
        Scenario made = base_;
        const auto changed = set(made.root, fmt::format("run.seed={}", seed));
        SIMVERBS_ASSERT(changed.has_value(), "{}", changed.error());
        return made;
    }

    [[nodiscard]] bool is_over(const SweepResult& result, Clock::time_point begin) const {
        return (options_.most_failures != 0 && result.failed >= options_.most_failures) ||
               (options_.limit != ProcessPool::kNoLimit && Clock::now() - begin >= options_.limit);
    }

    void take(const ProcessPool::Done& done, SweepResult& result,
              const std::function<void(const FailedSeed&)>& found) const {
        const Verdict verdict = verdict_of(done, base_.file);
        ++result.run;
        result.not_deterministic += verdict.deterministic ? 0 : 1;
        if (verdict.error.empty()) {
            result.digests.insert(verdict.digest);
        }
        if (verdict.passed()) {
            return;
        }
        ++result.failed;
        FailedSeed failed{done.id, verdict, {}, {}};
        keep(failed);
        found(failed);
    }

    void keep(FailedSeed& failed) const {
        namespace fs = std::filesystem;
        std::error_code ignored;
        fs::create_directories(options_.folder, ignored);
        const std::string path =
            (fs::path(options_.folder) / fmt::format("seed-{}.yaml", failed.seed)).string();
        std::ofstream out(path);
        out << fmt::format("# {} with seed {}{}: fails ({}).\n", base_.file, failed.seed,
                           swarm_ ? " and its faults" : "", kind_of(failed.verdict))
            << portable_text(scenario(failed.seed));
        out.close();
        (out ? failed.kept : failed.error) = out ? path : path + " cannot be written";
    }

    Scenario base_;
    const SweepOptions& options_;
    std::optional<Swarm> swarm_;
};

}  // namespace

SweepResult sweep(const std::string& file, const SweepOptions& options,
                  const std::function<void(const FailedSeed&)>& found) {
    SweepResult result;
    auto scenario = load(file, options.settings);
    if (!scenario) {
        result.error = scenario.error();
        return result;
    }
    Sweep sweep(std::move(*scenario), options);
    if (const auto prepared = sweep.prepare(); !prepared) {
        result.error = prepared.error();
        return result;
    }
    return sweep.run(found);
}

std::string report(const FailedSeed& failed) {
    std::string text = fmt::format("FAIL seed {}", failed.seed);
    if (!failed.verdict.error.empty()) {
        text += fmt::format(": {}\n", failed.verdict.error);
    } else {
        const Failure& first = first_failure(failed.verdict);
        text += fmt::format(" at {}\n    expected: {}\n    happened: {}\n",
                            time_text(first.time_ps), first.expected, first.happened);
    }
    return text + (failed.kept.empty() ? fmt::format("    {}\n", failed.error)
                                       : fmt::format("    replay: simverbs scenario {}\n"
                                                     "    make it small: simverbs shrink {}\n",
                                                     fabric::shell_word(failed.kept),
                                                     fabric::shell_word(failed.kept)));
}

}  // namespace scenarios
