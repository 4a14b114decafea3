#include "simverbs/cli/progress.hpp"

#include <cstdint>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "simverbs/cli/exit_status.hpp"

#include "scenarios/engine/observation.hpp"

namespace simverbs::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kSilentFor = 1s;  // at the beginning: short commands show nothing
constexpr auto kRedrawAfter = 200ms;

std::string in_words(std::chrono::seconds time) {
    constexpr std::int64_t kFewMinutes = 90;
    constexpr std::int64_t kFewHours = std::int64_t{90} * 60;
    const std::int64_t seconds = time.count();
    if (seconds < kFewMinutes) {
        return fmt::format("{} s", seconds);
    }
    return seconds < kFewHours ? fmt::format("{} min", (seconds + 30) / 60)
                               : fmt::format("{} h", (seconds + 1800) / 3600);
}

}  // namespace

Progress::Progress(std::string pieces, End end)
    : pieces_(std::move(pieces)), end_(end), is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
    clear();
}

bool Progress::look(const scenarios::Stage& stage) {
    const Clock::time_point now = Clock::now();
    if (is_terminal_ && now - begin_ >= kSilentFor && now - drawn_ >= kRedrawAfter) {
        drawn_ = now;
        is_drawn_ = true;
        fmt::print(stderr, "\r\x1b[K{}", line(stage));
        std::fflush(stderr);
    }
    return EndSignals::first() == 0;
}

std::string Progress::line(const scenarios::Stage& stage) const {
    const auto used = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin_);
    std::string text = end_ == End::kKnown
                           ? fmt::format("{} of {} {}", stage.done, stage.all, pieces_)
                           : fmt::format("{} {}", stage.done, pieces_);
    if (stage.all == 1 && stage.reached > 0) {
        text += fmt::format(", at {} of virtual time", scenarios::time_text(stage.reached));
    }
    if (end_ == End::kKnown && stage.done > 0) {
        const auto left = static_cast<std::int64_t>(stage.all - stage.done);
        text += fmt::format(", about {} left",
                            in_words(used * left / static_cast<std::int64_t>(stage.done)));
    } else {
        text += fmt::format(", {} so far", in_words(used));
    }
    return text;
}

void Progress::clear() {
    if (std::exchange(is_drawn_, false)) {
        fmt::print(stderr, "\r\x1b[K");
        std::fflush(stderr);
    }
}

int Progress::status(int status) {
    const int signal = EndSignals::first();
    return signal == 0 ? status : kSignalled + signal;
}

}  // namespace simverbs::cli
