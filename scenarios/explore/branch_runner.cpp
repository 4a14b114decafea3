#include "scenarios/explore/branch_runner.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "scenarios/engine/verdict_json.hpp"

namespace scenarios {

namespace {

// A branch hangs when it takes so long, and so many times as long as the run without faults.
constexpr auto kLeastLimit = std::chrono::seconds(2);
constexpr int kTimesUsual = 20;
// A program is told at its limit, and says what it waits for, before its process is killed.
constexpr auto kSpare = std::chrono::seconds(5);

BranchResult result_of(const std::string& text, const std::string& error) {
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

}  // namespace

BranchRunner::BranchRunner(const Subject& subject, unsigned jobs, std::chrono::milliseconds budget,
                           Onlooker onlooker)
    : subject_(subject),
      jobs_(jobs),
      onlooker_(std::move(onlooker)),
      end_of_budget_(budget == ProcessPool::kNoLimit ? Clock::time_point::max()
                                                     : Clock::now() + budget),
      end_(end_of_budget_) {}

bool BranchRunner::goes_on() const {
    return !onlooker_ || onlooker_(stage_);
}

std::optional<BranchResult> BranchRunner::run_usual(
    std::optional<std::chrono::milliseconds> limit) {
    const auto patience = limit ? *limit * kTimesAgain : ProcessPool::kNoLimit;
    const auto begin = Clock::now();
    auto usual = run_in_process({.with_places = true, .limit = patience}, ProcessPool::kNoLimit);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    limit_ = limit.value_or(std::max<std::chrono::milliseconds>(kLeastLimit, took * kTimesUsual));
    // A branch may take a few times as long as usual, and a process runs several.
    limit_of_process_ =
        subject_.keeps_limits()
            ? ProcessPool::kNoLimit
            : limit_ + kSpare + took * 4 * static_cast<int>(subject_.branches_of_process());
    return usual;
}

std::optional<BranchResult> BranchRunner::run_in_process(const Branch& branch,
                                                         std::chrono::milliseconds limit) {
    ProcessPool pool(
        [this, &branch](std::size_t, ProcessPool::Reached&) {
            return to_line(to_json(subject_.run(branch)));
        },
        {.limit = limit}, [this](std::int64_t) { return goes_on(); });
    pool.start(0);
    const std::vector<ProcessPool::Done> done = pool.wait();
    stopped_ = stopped_ || pool.is_stopped();
    return done.empty() ? std::nullopt
                        : std::optional(result_of(done.front().text, done.front().error));
}

std::optional<BranchResult> BranchRunner::run_alone(const Branch& branch) {
    auto result = run_in_process(branch, branch.limit + kSpare);
    return stopped_ ? std::nullopt : std::move(result);
}

std::optional<BranchResult> BranchRunner::run_patiently(Branch branch) {
    branch.limit = patient_limit();
    auto again = run_alone(branch);
    return again && again->outcome != Outcome::kHangs ? std::move(again) : std::nullopt;
}

void BranchRunner::use_share(unsigned percent) {
    if (end_of_budget_ != Clock::time_point::max()) {
        const auto now = Clock::now();
        end_ = now + std::max(end_of_budget_ - now, Clock::duration::zero()) / 100 * percent;
    }
}

// How many of so many branches a process runs, so that all have about as many.
std::size_t BranchRunner::size_of_piece(std::size_t branches) const {
    const std::size_t round = subject_.branches_of_process() * jobs_;
    const std::size_t pieces = (branches + round - 1) / round * jobs_;
    return pieces == 0 ? 1 : (branches + pieces - 1) / pieces;
}

std::string BranchRunner::run_piece(const std::vector<Branch>& branches, Piece piece) const {
    nlohmann::json all = nlohmann::json::array();
    const auto these = std::span(branches).subspan(piece.begin, piece.size());
    for (const BranchResult& result : subject_.run_all(these, end_)) {
        all.push_back(to_json(result));
    }
    return to_line(all);
}

void BranchRunner::take(const ProcessPool::Done& done, Piece piece,
                        std::vector<std::optional<BranchResult>>& results) {
    const auto parsed = nlohmann::json::parse(done.text, nullptr, false);
    for (std::size_t i = piece.begin; i < piece.end; ++i) {
        const bool is_there = parsed.is_array() && parsed.size() > i - piece.begin;
        if (parsed.is_array() && !is_there) {
            break;  // the time was over
        }
        results[i] =
            is_there ? branch_from_json(parsed[i - piece.begin]) : result_of("", done.error);
        ++stage_.done;
    }
}

std::vector<std::optional<BranchResult>> BranchRunner::run_all(
    const std::vector<Branch>& branches) {
    std::vector<std::optional<BranchResult>> results(branches.size());
    stage_.all += branches.size();
    std::vector<Piece> pieces;
    ProcessPool pool(
        [&](std::size_t id, ProcessPool::Reached&) { return run_piece(branches, pieces[id]); },
        {.jobs = jobs_, .limit = limit_of_process_}, [this](std::int64_t) { return goes_on(); });
    std::vector<std::size_t> alone;  // branches of pieces whose process died
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
            pool.start(pieces.size() - 1);
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
            } else {
                take(done, piece, results);
            }
        }
    }
    stopped_ = stopped_ || pool.is_stopped();
    return results;
}

}  // namespace scenarios
