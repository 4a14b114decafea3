#include "scenarios/search/shrink.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "fabric/yaml/quantities.hpp"

#include "scenarios/engine/compose.hpp"
#include "scenarios/search/reduce.hpp"

namespace scenarios {

namespace {

// Firings of one fault that are taken apart, at most.
constexpr std::size_t kMostFirings = 512;

// How long a candidate may take to fail. What goes wrong at an instant shows however early the run
// ends; what is judged at the end needs all of it.
RunOptions run_options(const Verdict& failed) {
    const std::string kind = kind_of(failed);
    const bool shows_at_once =
        kind.starts_with("invariant") || kind.starts_with("operation") || kind == "never";
    constexpr std::int64_t kTimes = 4;
    constexpr std::int64_t kSpare = 1'000'000'000;  // 1 ms
    const bool known = failed.error.empty() && shows_at_once;
    return {.stop_ps = known ? first_failure(failed).time_ps * kTimes + kSpare : 0};
}

class Shrinker {
  public:
    Shrinker(const Scenario& scenario, const Verdict& failed, const ShrinkOptions& options,
             const std::function<void(std::string_view)>& progress)
        : file_(scenario.file),
          kind_(kind_of(failed)),
          root_(failed.root),
          run_options_(run_options(failed)),
          options_(options),
          progress_(progress),
          current_(scenario.root),
          verdict_(failed) {}

    void shrink() {
        constexpr int kRounds = 3;  // what one pass takes away may make room for another
        for (int round = 0; round < kRounds; ++round) {
            const std::string before = to_text(current_);
            shrink_faults();
            shrink_hosts();
            shrink_operations();
            shrink_counts();
            shrink_rest();
            if (to_text(current_) == before) {
                break;
            }
        }
    }

    [[nodiscard]] const std::string& kind() const { return kind_; }
    [[nodiscard]] std::string text() const { return to_text(current_); }
    [[nodiscard]] std::size_t runs() const { return runs_; }
    [[nodiscard]] bool ran_out() const { return runs_ >= options_.most_runs; }
    [[nodiscard]] bool is_stopped() const { return stopped_; }

    [[nodiscard]] ScenarioSize size() const {
        std::size_t hosts = 0;
        if (const auto scenario = read(current_)) {
            hosts = scenario->hosts().size();
        }
        return {firings(verdict_), hosts, count_operations(current_)};
    }

  private:
    [[nodiscard]] fabric::Outcome<Scenario> read(const Document& document) const {
        return parse(to_text(document), file_, {});
    }

    // A fault that is not needed may go; another must not take its place.
    [[nodiscard]] bool has_same_root(const Verdict& verdict) const {
        return verdict.root.cause == root_.cause &&
               verdict.root.actions.empty() == root_.actions.empty() &&
               std::ranges::includes(root_.actions, verdict.root.actions);
    }

    [[nodiscard]] bool is_same(const Verdict& verdict) const {
        return verdict.error == kind_ ||
               (verdict.error.empty() && has_same_root(verdict) &&
                std::ranges::find(verdict.failures, kind_, &Failure::kind) !=
                    verdict.failures.end());
    }

    static std::size_t firings(const Verdict& verdict) {
        std::size_t fired = 0;
        for (const auto& [name, nths] : verdict.fired) {
            fired += nths.size();
        }
        return fired;
    }

    // Returns true if it still fails in the same way; then it is the current one.
    bool take(const Document& candidate) {
        if (!fails(candidate)) {
            return false;
        }
        current_ = candidate;
        verdict_ = last_;
        return true;
    }

    bool fails(const Document& candidate) {
        const std::string text = to_text(candidate);
        if (const auto known = known_.find(text); known != known_.end() && !known->second) {
            return false;
        }
        const auto scenario = parse(text, file_, {});
        if (!scenario || ran_out() || stopped_) {
            return false;
        }
        auto verdict =
            run_apart(*scenario, options_.runner, options_.limit, goes_on(), run_options_);
        stopped_ = !verdict;
        if (stopped_) {
            return false;
        }
        ++runs_;
        last_ = std::move(*verdict);
        // A scenario with fewer operations may lead to more retries, and those to more losses.
        return known_[text] = is_same(last_) && firings(last_) <= firings(verdict_);
    }

    [[nodiscard]] std::function<bool()> goes_on() const {
        return [this] {
            return !options_.onlooker || options_.onlooker({runs_, options_.most_runs});
        };
    }

    // The subset of `count` things with which it still fails, by the document that each makes.
    void minimise(std::size_t count, std::string_view what,
                  const std::function<Document(const Kept&)>& document_with) {
        const Kept kept =
            ddmin(count, [&](const Kept& subset) { return fails(document_with(subset)); });
        const auto left = static_cast<std::size_t>(std::ranges::count(kept, true));
        if (left < count) {
            take(document_with(kept));
        }
        if (!stopped_) {
            progress_(fmt::format("{}: {} of {}", what, left, count));
        }
    }

    void shrink_faults() {
        name_faults(current_);
        std::set<std::string> fired;
        for (const auto& [name, nths] : verdict_.fired) {
            if (!nths.empty()) {
                fired.insert(name);
            }
        }
        take(with_faults(current_, fired));
        for (const auto& [name, nths] : std::map(verdict_.fired)) {
            if (!nths.empty() && nths.size() <= kMostFirings && fires_by_rule(name)) {
                take_apart(name);
            }
        }
        const Document base = current_;
        const std::vector<std::string> names = fault_names(base);
        minimise(names.size(), "faults", [&](const Kept& kept) {
            std::set<std::string> left;
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (kept[i]) {
                    left.insert(names[i]);
                }
            }
            return with_faults(base, left);
        });
    }

    // Each firing on its own, with which the others go on by the packets that they hit; else, where
    // a packet has no place of its own, by their numbers.
    void take_apart(const std::string& name) {
        const std::vector<std::uint64_t>& nths = verdict_.fired.at(name);
        std::vector<FiringPlace> places(nths.size());
        std::ranges::transform(nths, places.begin(),
                               [](std::uint64_t nth) { return FiringPlace{nth}; });
        const std::vector<FiringPlace> by_number = places;
        const auto hit = verdict_.packets_hit.find(name);
        for (std::size_t i = 0;
             hit != verdict_.packets_hit.end() && i < std::min(places.size(), hit->second.size());
             ++i) {
            places[i].packet = hit->second[i];
        }
        if (!take(with_each_firing(current_, name, places))) {
            take(with_each_firing(current_, name, by_number));
        }
    }

    // A fault of the list that says of many things which it hits, not of one.
    [[nodiscard]] bool fires_by_rule(const std::string& name) const {
        const auto faults = Checked(current_).at("faults").items();
        return std::ranges::any_of(faults, [&name](const Document& fault) {
            const Checked when = Checked(fault).at("when");
            return Checked(fault).text("name") == name && (when.has("chance") || when.has("count"));
        });
    }

    void shrink_hosts() {
        const auto whole = read(current_);
        for (const std::string& host : whole ? whole->hosts() : std::vector<std::string>{}) {
            take(without(current_, names_of_host(*whole, host)));
        }
        const auto left = read(current_);
        if (!whole || !left) {
            return;
        }
        for (const auto& [name, body] : left->at("connections").entries()) {
            take(without(current_, names_of_connection(*left, name.text)));
        }
        if (const auto scenario = read(current_)) {
            for (const Document& smaller : on_smaller_fabrics(*scenario)) {
                if (take(smaller)) {
                    break;
                }
            }
        }
        if (const auto scenario = read(current_)) {
            progress_(
                fmt::format("hosts: {} of {}", scenario->hosts().size(), whole->hosts().size()));
        }
    }

    void shrink_operations() {
        const Document base = current_;
        minimise(count_operations(base), "operations",
                 [&base](const Kept& kept) { return with_operations(base, kept); });
    }

    // Each number as small as it may be.
    void shrink_counts() {
        std::vector<std::uint64_t> counts;
        for_each_count(current_, [&counts](std::size_t, Document& value) {
            counts.push_back(fabric::yaml::parse_number(value.text).value_or(0));
        });
        for (std::size_t i = 0; i < counts.size(); ++i) {
            std::uint64_t failing = counts[i];
            std::uint64_t passing = 0;
            while (failing > passing + 1) {
                const std::uint64_t middle = passing == 0 ? 1 : passing + (failing - passing) / 2;
                Document candidate = current_;
                for_each_count(candidate, [i, middle](std::size_t number, Document& value) {
                    if (number == i) {
                        value.text = std::to_string(middle);
                    }
                });
                (take(candidate) ? failing : passing) = middle;
            }
        }
    }

    // Removes expectations and settings of the run that make no difference.
    void shrink_rest() {
        for (const char* const section : {"expect", "run"}) {
            const Document base = current_;
            for (const auto& [key, value] : Checked(base).at(section).entries()) {
                if (key.text != "stop") {  // without it a run that never ends takes for ever
                    take(without_key(current_, section, key.text));
                }
            }
        }
    }

    std::string file_;
    std::string kind_;
    Root root_;
    RunOptions run_options_;
    const ShrinkOptions& options_;
    const std::function<void(std::string_view)>& progress_;
    Document current_;
    Verdict verdict_;  // of the current one
    Verdict last_;
    std::map<std::string, bool> known_;
    std::size_t runs_ = 0;
    bool stopped_ = false;
};

}  // namespace

ShrinkResult shrink(const std::string& file, const ShrinkOptions& options,
                    const std::function<void(std::string_view)>& progress) {
    ShrinkResult result;
    std::vector<std::string> settings = options.settings;
    if (options.seed) {
        settings.push_back(fmt::format("run.seed={}", *options.seed));
    }
    const auto scenario = load(file, settings).and_then([&file](const Scenario& loaded) {
        return parse(portable_text(loaded), file, {});
    });
    if (!scenario) {
        result.error = scenario.error();
        return result;
    }
    const auto goes_on = [&options] {
        return !options.onlooker || options.onlooker({0, options.most_runs});
    };
    auto verdict = run_apart(*scenario, options.runner, options.limit, goes_on);
    result.stopped = !verdict;
    if (result.stopped) {
        return result;
    }
    result.verdict = std::move(*verdict);
    if (result.verdict.passed()) {
        result.error = fmt::format("{}: it passes{}: there is no failure to keep", file,
                                   options.seed ? fmt::format(" with seed {}", *options.seed) : "");
        return result;
    }
    Shrinker shrinker(*scenario, result.verdict, options, progress);
    result.before = shrinker.size();
    shrinker.shrink();
    result.after = shrinker.size();
    result.kind = shrinker.kind();
    result.text = fmt::format("# {} made small: it fails in the same way ({}).\n{}", file,
                              result.kind, shrinker.text());
    if (const auto small = parse(result.text, file, {})) {
        result.verdict = run_apart(*small, options.runner, options.limit, {}).value();
    } else {
        result.error = small.error();
    }
    result.runs = shrinker.runs();
    result.stopped = shrinker.is_stopped();
    result.ran_out = shrinker.ran_out();
    return result;
}

}  // namespace scenarios
