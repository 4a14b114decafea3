#include "simverbs/server/watched_process.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "simverbs/time/rule.hpp"

namespace simverbs {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kThreadListNs = 5'000'000;

}  // namespace

void WatchedProcess::find_threads(std::int64_t now) {
    const std::string folder = fmt::format("/proc/{}/task", process_);
    std::error_code gone;
    const std::uint64_t count = fs::hard_link_count(folder, gone);
    if (!threads_.empty() && count == thread_count_ &&
        now - looked_for_threads_ns_ < kThreadListNs) {
        return;
    }
    looked_for_threads_ns_ = now;
    thread_count_ = count;
    std::map<pid_t, std::unique_ptr<ThreadWatch>> found;
    for (const auto& entry : fs::directory_iterator(folder, gone)) {
        const std::string name = entry.path().filename();
        pid_t thread = 0;
        std::from_chars(name.data(), name.data() + name.size(), thread);
        auto known = threads_.find(thread);
        found[thread] = known != threads_.end() ? std::move(known->second)
                                                : std::make_unique<ThreadWatch>(process_, thread);
    }
    threads_ = std::move(found);
}

bool WatchedProcess::sleeps(const std::vector<pid_t>& actors, ThreadLook& look) {
    find_threads(wall_ns());
    const auto is_actor = [&actors](const auto& entry) {
        return std::binary_search(actors.begin(), actors.end(), entry.first);
    };
    const auto spin_limit = std::any_of(threads_.begin(), threads_.end(), is_actor)
                                ? look.spin_limit
                                : std::chrono::nanoseconds::zero();
    return std::all_of(threads_.begin(), threads_.end(), [&](const auto& entry) {
        if (is_actor(entry)) {
            return true;
        }
        ThreadWatch& watch = *entry.second;
        const ThreadState found = watch.look(spin_limit, look.interval);
        const bool spins = found == ThreadState::kSpins;
        if (found == ThreadState::kRuns || (spins && !look.something_may_come)) {
            look.busy_process = process_;
            look.busy = watch.busy_for();
            return false;
        }
        if (spins) {
            look.spinner = watch.program();
        }
        return true;
    });
}

void WatchedProcess::expect_wake() {
    for (const auto& [thread, watch] : threads_) {
        watch->forget();
    }
}

}  // namespace simverbs
