#include "scenarios/explore/explore.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "scenarios/engine/verdict_json.hpp"
#include "scenarios/explore/demands.hpp"

namespace scenarios {

namespace {

using Clock = std::chrono::steady_clock;

// A branch hangs when it takes so long, and so many times as long as the run without faults.
constexpr auto kLeastLimit = std::chrono::seconds(2);
constexpr int kTimesUsual = 20;
constexpr int kTimesAgain = 3;
// A program is told at its limit, and says what it waits for, before its process is killed.
constexpr auto kSpare = std::chrono::seconds(5);

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
        : subject_(subject), options_(options), begin_(Clock::now()) {}

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
            expand({}, usual->places, singles_);
            result_.places = usual->places;
            run_all(singles_, result_.singles);
            result_.left = singles_.size() - done_;
            add_untried();
            run_orders();
            if (options_.depth > 1) {
                run_pairs();
            }
        }
        result_.stopped = stopped_;
        return std::move(result_);
    }

  private:
    // A branch of one fault, with the packets that are sent in it.
    struct Expansion {
        Choice choice;
        std::vector<Place> places;
    };

    // The scenario itself must pass.
    std::optional<BranchResult> run_usual() {
        std::optional<BranchResult> usual;
        const auto patience =
            options_.limit ? *options_.limit * kTimesAgain : ProcessPool::kNoLimit;
        const auto begin = Clock::now();
        ProcessPool pool(1, ProcessPool::kNoLimit, [this](std::int64_t) { return goes_on(); });
        pool.start(0, [this, patience](ProcessPool::Reached&) {
            return to_line(to_json(subject_.run({.with_places = true, .limit = patience})));
        });
        for (const ProcessPool::Done& done : pool.wait()) {
            usual = result_of(done.text, done.error);
        }
        stopped_ = pool.is_stopped();
        const auto took =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
        limit_ = options_.limit.value_or(
            std::max<std::chrono::milliseconds>(kLeastLimit, took * kTimesUsual));
        // A branch may take a few times as long as usual, and a process runs several.
        limit_of_process_ =
            subject_.keeps_limits()
                ? ProcessPool::kNoLimit
                : limit_ + kSpare + took * 4 * static_cast<int>(subject_.branches_of_process());
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
        const auto again = run_alone({.with_places = true, .limit = limit_ * kTimesAgain});
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

    [[nodiscard]] bool goes_on() const {
        const std::uint64_t run = result_.singles + result_.orders + result_.pairs;
        return !options_.onlooker ||
               options_.onlooker({static_cast<std::size_t>(run),
                                  singles_.size() + static_cast<std::size_t>(others_known_)});
    }

    // Returns when no branch is begun any more.
    [[nodiscard]] Clock::time_point end_of_budget() const {
        return options_.budget == ProcessPool::kNoLimit ? Clock::time_point::max()
                                                        : begin_ + options_.budget;
    }

    [[nodiscard]] bool is_over() const { return stopped_ || Clock::now() >= end_of_budget(); }

    static BranchResult result_of(const std::string& text, const std::string& error) {
        const auto parsed = nlohmann::json::parse(text, nullptr, false);
        if (error.empty() && parsed.is_array()) {
            return branch_from_json(parsed);
        }
        BranchResult result;
        const bool took_too_long = error.find("too long") != std::string::npos;
        result.outcome = took_too_long ? Outcome::kTooLong : Outcome::kCrashed;
        result.kind = error.empty() ? "what its process left cannot be read" : error;
        return result;
    }

    // Adds a branch for each choice at each place behind those of `before`.
    void expand(const std::vector<Choice>& before, const std::vector<Place>& places,
                std::vector<Branch>& branches) {
        const std::size_t first = before.empty() ? 0 : before.back().place + 1;
        for (std::size_t i = first; i < places.size(); ++i) {
            for (Choice& choice : choices_->at(i, places[i])) {
                if (before.empty()) {
                    ++result_.choices[std::string(
                        kChoiceGroupNames[static_cast<std::size_t>(choice.group)])];
                }
                Branch branch{.choices = before,
                              .with_places = before.empty() && options_.depth > 1,
                              .limit = limit_};
                branch.choices.push_back(std::move(choice));
                branch.is_repaired = branch.choices.size() <= repaired_faults_ &&
                                     std::ranges::all_of(branch.choices, [](const Choice& each) {
                                         return each.harm == Harm::kRepaired;
                                     });
                branches.push_back(std::move(branch));
            }
        }
    }

    // How many of so many branches a process runs, so that all have about as many.
    [[nodiscard]] std::size_t size_of_piece(std::size_t branches) const {
        const std::size_t round = subject_.branches_of_process() * options_.jobs;
        const std::size_t pieces = (branches + round - 1) / round * options_.jobs;
        return pieces == 0 ? 1 : (branches + pieces - 1) / pieces;
    }

    // Runs branches in processes, until the time is over; takes what came of them in their order,
    // in which findings do not depend on the number of processes.
    void run_all(const std::vector<Branch>& branches, std::uint64_t& count) {
        std::vector<std::optional<BranchResult>> results(branches.size());
        ProcessPool pool(options_.jobs, limit_of_process_,
                         [this](std::int64_t) { return goes_on(); });
        struct Piece {
            std::size_t begin, end;
            [[nodiscard]] std::size_t size() const { return end - begin; }
        };
        std::vector<Piece> pieces;
        std::vector<std::size_t> alone;
        std::size_t next = 0;
        const std::size_t piece_size = size_of_piece(branches.size());
        while (!pool.is_stopped()) {
            while (!pool.is_full() && !is_over() && (!alone.empty() || next < branches.size())) {
                Piece piece{next, std::min(next + piece_size, branches.size())};
                if (!alone.empty()) {
                    piece = {alone.back(), alone.back() + 1};
                    alone.pop_back();
                } else {
                    next = piece.end;
                }
                pieces.push_back(piece);
                pool.start(pieces.size() - 1, [this, piece, &branches](ProcessPool::Reached&) {
                    nlohmann::json all = nlohmann::json::array();
                    const auto these = std::span(branches).subspan(piece.begin, piece.size());
                    for (const BranchResult& result : subject_.run_all(these, end_of_budget())) {
                        all.push_back(to_json(result));
                    }
                    return to_line(all);
                });
            }
            if (pool.is_idle()) {
                break;
            }
            for (const ProcessPool::Done& done : pool.wait()) {
                const Piece piece = pieces[done.id];
                if (!done.error.empty() && piece.size() > 1) {
                    for (std::size_t i = piece.end; i-- > piece.begin;) {
                        alone.push_back(i);
                    }
                    continue;
                }
                const auto parsed = nlohmann::json::parse(done.text, nullptr, false);
                for (std::size_t i = piece.begin; i < piece.end; ++i) {
                    const bool is_there = parsed.is_array() && parsed.size() > i - piece.begin;
                    if (parsed.is_array() && !is_there) {
                        break;  // the time was over
                    }
                    results[i] = is_there ? branch_from_json(parsed[i - piece.begin])
                                          : result_of("", done.error);
                    ++count;
                }
            }
        }
        stopped_ = stopped_ || pool.is_stopped();
        done_ = 0;
        for (std::size_t i = 0; i < branches.size(); ++i) {
            if (results[i]) {
                apply(demands_, branches[i], *results[i]);
                take(branches[i], *results[i]);
                ++done_;
            }
        }
    }

    void count(const Branch& branch, Outcome outcome, std::optional<std::size_t> finding = {}) {
        ++result_.outcomes[std::string(to_string(outcome))];
        if (branch.choices.size() == 1 && !branch.choices.front().order) {
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

    void take(const Branch& branch, const BranchResult& result) {
        result_.forked += result.is_forked ? 1 : 0;
        if (branch.choices.front().order && result.run_digest != 0) {
            orders_seen_.insert(result.run_digest);
        }
        if (result.outcome == Outcome::kPassed && branch.with_places) {
            if (seen_.insert(result.effects).second) {
                expansions_.push_back({branch.choices.front(), result.places});
            } else {
                ++result_.same;
            }
        }
        if (result.outcome == Outcome::kPassed || result.outcome == Outcome::kMissed) {
            count(branch, result.outcome);
        } else {
            add_finding(branch, result);
        }
    }

    // One that hangs runs once more before the first of its class is believed.
    void add_finding(const Branch& branch, const BranchResult& result) {
        std::vector<std::string> actions;
        for (const Choice& choice : branch.choices) {
            actions.push_back(choice.action);
        }
        std::ranges::sort(actions);
        const std::string key = fmt::format("{}|{}|{}|{}", to_string(result.outcome), result.kind,
                                            result.cause, fmt::join(actions, ","));
        auto known = classes_.find(key);
        if (known == classes_.end()) {
            if (auto again = run_again(branch, result.outcome); again) {
                apply(demands_, branch, *again);
                take(branch, *again);
                return;
            }
            Finding finding{.result = result, .choices = branch.choices};
            explain(finding, branch);
            keep(finding, branch);
            known = classes_.emplace(key, result_.findings.size()).first;
            result_.findings.push_back(std::move(finding));
        }
        ++result_.findings[known->second].branches;
        count(branch, result.outcome, known->second);
    }

    // Runs a branch that hangs alone, and with several times the limit: on a busy machine a branch
    // may take longer. Returns what came of it if it hangs no more.
    std::optional<BranchResult> run_again(Branch branch, Outcome outcome) {
        if (outcome != Outcome::kHangs) {
            return std::nullopt;
        }
        branch.limit = limit_ * kTimesAgain;
        auto again = run_alone(branch);
        return again && again->outcome != Outcome::kHangs ? again : std::nullopt;
    }

    // Runs the branch once more, with a trace.
    void explain(Finding& finding, Branch branch) {
        branch.with_places = false;
        branch.with_explanation = true;
        if (const auto explained = run_alone(branch)) {
            finding.result.explanation = explained->explanation;
        }
    }

    // Returns nothing if the exploration was stopped meanwhile.
    std::optional<BranchResult> run_alone(const Branch& branch) {
        ProcessPool pool(1, branch.limit + kSpare, [this](std::int64_t) { return goes_on(); });
        pool.start(0, [this, &branch](ProcessPool::Reached&) {
            return to_line(to_json(subject_.run(branch)));
        });
        const std::vector<ProcessPool::Done> done = pool.wait();
        return done.empty() || pool.is_stopped()
                   ? std::nullopt
                   : std::optional(result_of(done.front().text, done.front().error));
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
        if (!is_wanted || !subject_.may_have_threads() || options_.orders == 0 || is_over()) {
            return;
        }
        std::vector<Branch> branches;
        for (Choice& order : orders(options_.orders)) {
            branches.push_back({.choices = {std::move(order)}, .limit = limit_});
        }
        const auto first = run_alone(branches.front());
        if (!first || (first->outcome == Outcome::kPassed && first->turns == 0)) {
            return;
        }
        others_known_ += branches.size();
        run_all(branches, result_.orders);
        result_.different_orders = orders_seen_.size();
        result_.orders_left = branches.size() - done_;
    }

    // Those that touch the same connection first.
    void run_pairs() {
        std::ranges::sort(expansions_, {}, [](const Expansion& each) { return each.choice.place; });
        for (const bool of_same_connection : {true, false}) {
            for (const Expansion& expansion : expansions_) {
                if (is_over()) {
                    result_.pairs_left = true;
                    return;
                }
                std::vector<Branch> branches;
                expand({expansion.choice}, expansion.places, branches);
                const std::string end = connection_of(expansion.places, expansion.choice.place);
                std::erase_if(branches, [&](const Branch& branch) {
                    return (connection_of(expansion.places, branch.choices.back().place) == end) !=
                           of_same_connection;
                });
                others_known_ += branches.size();
                run_all(branches, result_.pairs);
                result_.pairs_left = result_.pairs_left || done_ < branches.size();
            }
        }
    }

    // "c" of "h0/c"; "" where a packet belongs to none.
    static std::string connection_of(const std::vector<Place>& places, std::size_t place) {
        const std::string& end = places[place].packet.end;
        return end.substr(std::min(end.find('/'), end.size()));
    }

    const Subject& subject_;
    const ExploreOptions& options_;
    Clock::time_point begin_;
    std::optional<Choices> choices_;
    std::size_t repaired_faults_ = 0;
    Demands demands_;
    std::chrono::milliseconds limit_{};  // of a branch
    std::chrono::milliseconds limit_of_process_{};
    ExploreResult result_;
    std::vector<Branch> singles_;
    std::vector<Expansion> expansions_;
    std::set<std::uint64_t> seen_;  // effects of branches of one fault, and of none
    std::map<std::string, std::size_t> classes_;
    std::set<std::uint64_t> orders_seen_;  // run digests
    std::uint64_t others_known_ = 0;       // branches that are none of singles_
    std::size_t done_ = 0;                 // branches of the last run_all()
    bool stopped_ = false;
};

}  // namespace

ExploreResult explore(const Subject& subject, const ExploreOptions& options) {
    return Exploration(subject, options).run();
}

}  // namespace scenarios
