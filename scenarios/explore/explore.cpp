#include "scenarios/explore/explore.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "scenarios/explore/branch_runner.hpp"
#include "scenarios/explore/demands.hpp"
#include "scenarios/explore/random_walks.hpp"

namespace scenarios {

namespace {

// Gives pairs this part of the time that is left, in percent; walks have the rest.
constexpr unsigned kShareOfPairs = 50;

std::vector<ChoiceGroup> all_groups() {
    using enum ChoiceGroup;
    return {kPackets, kReceives, kCalls, kLinks,  kQueuePairs,
            kHosts,   kPosts,    kPolls, kEvents, kOrders};
}

// "exit: expected exit status 0 of "false" on h0, and got 1"
std::string words_of(const BranchResult& failed) {
    if (failed.kind == "error" || failed.happened.empty()) {
        return failed.kind == "error" ? failed.happened : failed.kind;
    }
    return failed.expected.empty() ? fmt::format("{}: {}", failed.kind, failed.happened)
                                   : fmt::format("{}: expected {}, and got {}", failed.kind,
                                                 failed.expected, failed.happened);
}

class Exploration {
  public:
    Exploration(const Subject& subject, const ExploreOptions& options)
        : subject_(subject),
          options_(options),
          runner_(subject, options.jobs, options.budget, options.onlooker) {}

    ExploreResult run() {
        if (const auto usual = run_usual(); usual) {
            result_.packets = static_cast<std::size_t>(std::ranges::count_if(
                usual->places, [](const Place& place) { return place.call.empty(); }));
            result_.calls = static_cast<std::size_t>(std::ranges::count_if(
                usual->places, [](const Place& place) { return place.call.starts_with("ibv_"); }));
            repaired_faults_ = usual->surroundings.repaired_faults;
            choices_.emplace(usual->surroundings,
                             options_.groups.empty() ? all_groups() : options_.groups,
                             options_.host);
            result_.places = usual->places;
            run_singles();
            run_orders();
            if (options_.depth > 1) {
                runner_.use_share(options_.depth > 2 ? kShareOfPairs : 100);
                run_pairs();
                runner_.use_all();
            }
            if (options_.depth > 2) {
                run_walks();
            }
        }
        result_.stopped = runner_.is_stopped();
        return std::move(result_);
    }

  private:
    // The scenario itself must pass.
    std::optional<BranchResult> run_usual() {
        auto usual = runner_.run_usual(options_.limit);
        if (usual) {
            demands_ = {.usual_mistakes = usual->mistakes, .within = options_.within};
            apply(demands_, {}, *usual);
        }
        if (usual && usual->outcome != Outcome::kPassed) {
            result_.failure = words_of(*usual);
            refuse(Unexplored::kFailsByItself, fmt::format("{}: it fails without any fault: {}",
                                                           subject_.name(), result_.failure));
            return std::nullopt;
        }
        if (usual && usual->places.empty()) {
            refuse(Unexplored::kNoPlace,
                   fmt::format("{}: no host sends a packet in it, and no verb of it can fail",
                               subject_.name()));
            return std::nullopt;
        }
        if (usual && !options_.host.empty() &&
            std::ranges::find(usual->surroundings.hosts, options_.host) ==
                usual->surroundings.hosts.end()) {
            refuse(Unexplored::kNoSuchHost,
                   fmt::format("--host {}: no such host has a queue pair; these have: {}",
                               options_.host, fmt::join(usual->surroundings.hosts, ", ")));
            return std::nullopt;
        }
        if (usual) {
            seen_.insert(usual->effects);
            result_.mistakes = demands_.usual_mistakes;
            std::erase_if(result_.mistakes, [](const Mistake& mistake) {
                return excuse_of(mistake.misuse) == Excuse::kAny;
            });
            result_.marks = usual->marks;
            run_usual_again(*usual);
        }
        return usual;
    }

    // Two runs of a program without faults must be the same, if a branch is to be what its fault
    // makes of it. Where a mark says why they may differ, the user knows.
    void run_usual_again(const BranchResult& usual) {
        if (subject_.check().empty() || !usual.marks.empty()) {
            return;
        }
        const auto again =
            runner_.run_alone({.with_places = true, .limit = runner_.patient_limit()});
        if (!again || again->run_digest == usual.run_digest || !again->marks.empty()) {
            return;
        }
        BranchResult result{.outcome = Outcome::kNotDeterministic,
                            .kind = "without any fault",
                            .expected = fmt::format("run digest {:016x} again", usual.run_digest),
                            .happened = fmt::format("{:016x}", again->run_digest)};
        result_.findings.push_back(
            {.result = std::move(result), .branches = 1, .replay = subject_.check()});
        ++result_.outcomes[std::string(to_string(Outcome::kNotDeterministic))];
    }

    void refuse(Unexplored unexplored, std::string error) {
        result_.unexplored = unexplored;
        result_.error = std::move(error);
    }

    // Adds a branch for each choice at each place behind those of `before`.
    void expand(const std::vector<Choice>& before, const std::vector<Place>& places,
                std::vector<Branch>& branches) {
        for (std::size_t i = place_behind(before); i < places.size(); ++i) {
            for (Choice& choice : choices_->at(i, places[i])) {
                std::vector<Choice> all = before;
                all.push_back(std::move(choice));
                branches.push_back(branch_of(std::move(all)));
            }
        }
    }

    [[nodiscard]] Branch branch_of(std::vector<Choice> choices) const {
        const auto orders = std::ranges::count_if(
            choices, [](const Choice& each) { return each.order.has_value(); });
        const bool is_repaired =
            choices.size() - static_cast<std::size_t>(orders) <= repaired_faults_ &&
            std::ranges::all_of(choices,
                                [](const Choice& each) { return each.harm == Harm::kRepaired; });
        return {
            .choices = std::move(choices), .is_repaired = is_repaired, .limit = runner_.limit()};
    }

    // Runs branches, and takes what came of them in their order, in which findings do not depend on
    // the number of processes.
    std::vector<std::optional<BranchResult>> run_all(const std::vector<Branch>& branches,
                                                     std::uint64_t& count) {
        std::vector<std::optional<BranchResult>> results = runner_.run_all(branches);
        for (std::size_t i = 0; i < branches.size(); ++i) {
            if (results[i]) {
                take(branches[i], *results[i]);
                ++count;
            }
        }
        return results;
    }

    void run_singles() {
        expand({}, result_.places, singles_);
        for (Branch& branch : singles_) {
            const auto group = static_cast<std::size_t>(branch.choices.front().group);
            ++result_.choices[std::string(kChoiceGroupNames[group])];
            branch.with_places = options_.depth > 1;
        }
        auto results = run_all(singles_, result_.singles);
        result_.left = singles_.size() - result_.singles;
        for (std::size_t i = 0; options_.depth > 1 && i < singles_.size(); ++i) {
            if (!results[i] || results[i]->outcome != Outcome::kPassed) {
                continue;
            }
            if (seen_.insert(results[i]->effects).second) {
                expansions_.push_back({singles_[i].choices, std::move(results[i]->places)});
            } else {
                ++result_.same;
            }
        }
        add_untried();
    }

    void count(const Branch& branch, Outcome outcome, std::optional<std::size_t> finding = {}) {
        ++result_.outcomes[std::string(to_string(outcome))];
        if (branch.choices.size() == 1 && !is_order(branch)) {
            result_.tried.push_back({branch.choices.front(), outcome, finding});
        }
    }

    // Adds the single faults for which there was no time, each in its place. Both lists have the
    // order of the branches.
    void add_untried() {
        std::vector<Tried> all;
        auto next = result_.tried.begin();
        for (const Branch& branch : singles_) {
            const Choice& choice = branch.choices.front();
            const bool was_tried = next != result_.tried.end() && next->choice.name == choice.name;
            all.push_back(was_tried ? std::move(*next++) : Tried{.choice = choice});
        }
        result_.tried = std::move(all);
    }

    // One that hangs runs once more before the first of its class is believed.
    void take(const Branch& branch, BranchResult& result) {
        apply(demands_, branch, result);
        result_.forked += result.is_forked ? 1 : 0;
        if (result.outcome == Outcome::kHangs && !class_of(branch, result)) {
            if (auto again = runner_.run_patiently(branch)) {
                result = std::move(*again);
                apply(demands_, branch, result);
            }
        }
        if (is_order(branch) && result.run_digest != 0) {
            orders_seen_.insert(result.run_digest);
        }
        if (result.outcome == Outcome::kPassed || result.outcome == Outcome::kMissed) {
            count(branch, result.outcome);
        } else {
            add_finding(branch, result);
        }
    }

    static std::vector<std::string> actions_of(const std::vector<Choice>& choices) {
        std::vector<std::string> actions;
        for (const Choice& choice : choices) {
            actions.push_back(choice.action);
        }
        std::ranges::sort(actions);
        return actions;
    }

    // Returns the index of the finding to which a branch belongs: what happened is the same, and
    // its faults are of the same kinds, or there are others besides.
    [[nodiscard]] std::optional<std::size_t> class_of(const Branch& branch,
                                                      const BranchResult& result) const {
        const std::vector<std::string> actions = actions_of(branch.choices);
        const auto found = std::ranges::find_if(result_.findings, [&](const Finding& finding) {
            return finding.result.outcome == result.outcome && finding.result.kind == result.kind &&
                   finding.result.cause == result.cause && !finding.choices.empty() &&
                   std::ranges::includes(actions, actions_of(finding.choices));
        });
        return found == result_.findings.end()
                   ? std::nullopt
                   : std::optional(static_cast<std::size_t>(found - result_.findings.begin()));
    }

    void add_finding(const Branch& branch, const BranchResult& result) {
        std::optional<std::size_t> known = class_of(branch, result);
        if (!known) {
            Finding finding{.result = result, .choices = branch.choices};
            explain(finding, branch);
            keep(finding, branch);
            known = result_.findings.size();
            result_.findings.push_back(std::move(finding));
        }
        ++result_.findings[*known].branches;
        count(branch, result.outcome, known);
    }

    // Runs the branch once more, with a trace.
    void explain(Finding& finding, Branch branch) {
        branch.with_places = false;
        branch.with_explanation = true;
        if (const auto explained = runner_.run_alone(branch)) {
            finding.result.explanation = explained->explanation;
        }
    }

    void keep(Finding& finding, const Branch& branch) const {
        namespace fs = std::filesystem;
        std::error_code ignored;
        fs::create_directories(options_.folder, ignored);
        const std::string path =
            (fs::path(options_.folder) /
             fmt::format("explore-{}.yaml", options_.kept + result_.findings.size() + 1))
                .string();
        finding.scenario = fmt::format("# {}: {} ({}).\n", subject_.name(),
                                       to_string(finding.result.outcome), finding.result.kind);
        for (const Choice& choice : finding.choices) {
            finding.scenario += fmt::format("# {}\n", choice.name);
        }
        finding.scenario += subject_.reproducer(branch);
        std::ofstream out(path);
        out << finding.scenario;
        out.close();
        if (out) {
            finding.kept = path;
            finding.replay = subject_.replay(path);
        } else {
            finding.error = path + " cannot be written";
        }
    }

    // The first order says whether threads ever have a choice.
    void run_orders() {
        const bool is_wanted =
            options_.host.empty() &&
            (options_.groups.empty() ||
             std::ranges::find(options_.groups, ChoiceGroup::kOrders) != options_.groups.end());
        if (!is_wanted || !subject_.may_have_threads() || options_.orders == 0 ||
            runner_.is_over()) {
            return;
        }
        std::vector<Branch> branches;
        for (Choice& order : orders(options_.orders)) {
            branches.push_back({.choices = {std::move(order)},
                                .with_places = options_.depth > 1,
                                .limit = runner_.limit()});
        }
        const auto first = runner_.run_alone(branches.front());
        if (!first || (first->outcome == Outcome::kPassed && first->turns_digest == 0)) {
            return;
        }
        auto results = run_all(branches, result_.orders);
        for (std::size_t i = 0; options_.depth > 1 && i < branches.size(); ++i) {
            if (results[i] && results[i]->outcome == Outcome::kPassed &&
                turns_seen_.insert(results[i]->turns_digest).second) {
                ordered_.push_back({branches[i].choices, std::move(results[i]->places)});
            }
        }
        result_.different_orders = orders_seen_.size();
        result_.orders_left = branches.size() - result_.orders;
    }

    // Those that touch the same connection first, then faults with an order of threads.
    void run_pairs() {
        std::ranges::sort(expansions_, {},
                          [](const Expansion& each) { return each.choices.front().place; });
        run_pairs_of_faults(true);
        run_faults_of_orders();
        run_pairs_of_faults(false);
    }

    void run_pairs_of_faults(bool of_same_connection) {
        for (const Expansion& expansion : expansions_) {
            std::vector<Branch> branches;
            expand(expansion.choices, expansion.places, branches);
            const std::string end =
                connection_of(expansion.places, expansion.choices.front().place);
            std::erase_if(branches, [&](const Branch& branch) {
                return (connection_of(expansion.places, branch.choices.back().place) == end) !=
                       of_same_connection;
            });
            if (!run_as_pairs(branches)) {
                return;
            }
        }
    }

    void run_faults_of_orders() {
        for (const Expansion& expansion : ordered_) {
            std::vector<Branch> branches;
            expand(expansion.choices, expansion.places, branches);
            if (!run_as_pairs(branches)) {
                return;
            }
        }
    }

    // Returns false if there is no time for more.
    bool run_as_pairs(const std::vector<Branch>& branches) {
        if (branches.empty()) {
            return true;
        }
        if (runner_.is_over()) {
            result_.pairs_left = true;
            return false;
        }
        const auto results = run_all(branches, result_.pairs);
        result_.pairs_left =
            result_.pairs_left ||
            !std::ranges::all_of(results, [](const auto& result) { return result.has_value(); });
        return true;
    }

    void run_walks() {
        std::ranges::move(ordered_, std::back_inserter(expansions_));
        RandomWalks walks(*choices_, expansions_, options_.depth, options_.walks, options_.seed);
        for (auto next = walks.next(); !next.empty(); next = walks.next()) {
            if (runner_.is_over()) {
                result_.walks_left = true;
                return;
            }
            std::vector<Branch> branches;
            for (std::vector<Choice>& choices : next) {
                branches.push_back(branch_of(std::move(choices)));
                branches.back().with_places = branches.back().choices.size() < options_.depth;
            }
            auto results = run_all(branches, result_.walked);
            for (std::size_t i = 0; i < branches.size(); ++i) {
                result_.walks_left = result_.walks_left || !results[i];
                if (results[i] && results[i]->outcome == Outcome::kPassed &&
                    branches[i].with_places) {
                    walks.has_passed(i, std::move(results[i]->places));
                }
            }
        }
    }

    // An order of threads without a fault.
    static bool is_order(const Branch& branch) {
        return branch.choices.size() == 1 && branch.choices.front().order.has_value();
    }

    // "c" of "h0/c"; "" where a packet belongs to none.
    static std::string connection_of(const std::vector<Place>& places, std::size_t place) {
        const std::string& end = places[place].packet.end;
        return end.substr(std::min(end.find('/'), end.size()));
    }

    const Subject& subject_;
    const ExploreOptions& options_;
    BranchRunner runner_;
    std::optional<Choices> choices_;
    std::size_t repaired_faults_ = 0;
    Demands demands_;
    ExploreResult result_;
    std::vector<Branch> singles_;
    std::vector<Expansion> expansions_;    // branches of one fault that passed, each unlike others
    std::vector<Expansion> ordered_;       // of one order of threads
    std::set<std::uint64_t> seen_;         // effects of branches of one fault, and of none
    std::set<std::uint64_t> turns_seen_;   // digests of the turns of orders
    std::set<std::uint64_t> orders_seen_;  // run digests
};

}  // namespace

ExploreResult explore(const Subject& subject, const ExploreOptions& options) {
    return Exploration(subject, options).run();
}

}  // namespace scenarios
