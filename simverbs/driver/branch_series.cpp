#include "simverbs/driver/branch_series.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/driver/child_end.hpp"
#include "simverbs/driver/machine_calls.hpp"

namespace simverbs::driver {
namespace {

using namespace std::chrono_literals;

// A branch that takes longer has a child of its own.
constexpr auto kPatience = 100ms;
constexpr int kMostInVain = 3;

}  // namespace

// In memory that parent and child share.
struct BranchSeries::Area {
    std::atomic<std::uint32_t> begun;  // branches
    std::atomic<std::uint32_t> ended;
    std::atomic<bool> runs;  // a branch
    int status;              // of the last one that has ended
    off_t reports_before;    // the size of the file as the branch began
    std::size_t name_bytes;
    std::array<char, 64> name;
    Checkpoint checkpoint;
};

namespace {

// Belongs to the child; its signal handler finds it here.
void* confined_area = nullptr;

}  // namespace

void BranchSeries::Unmap::operator()(Area* area) const {
    munmap(area, sizeof *area);
}

bool BranchSeries::begin() {
    if (in_vain_ >= kMostInVain) {
        return false;
    }
    if (area_ == nullptr) {
        void* const memory = mmap(nullptr, sizeof(Area), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            in_vain_ = kMostInVain;
            return false;
        }
        area_.reset(static_cast<Area*>(memory));
    }
    area_->begun = 0;
    area_->ended = 0;
    area_->runs = false;
    area_->checkpoint.forget();
    return true;
}

bool BranchSeries::shares(std::uint64_t address) const {
    const auto begin = reinterpret_cast<std::uint64_t>(area_.get());
    return begin <= address && address < begin + sizeof(Area);
}

BranchSeries::Result BranchSeries::await(pid_t child) {
    const ChildEnd end(child);
    std::uint32_t seen = 0;
    while (!end.can_wait() || !end.comes_within(kPatience)) {
        if (!end.can_wait() || seen == area_->begun) {
            kill(child, SIGKILL);
            break;
        }
        seen = area_->begun;
    }
    const int status = end.status();
    const Result result{.branches = area_->ended, .is_broken = area_->runs};
    // A program that crashes has not been ended for what it did.
    const bool is_ended =
        WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGSYS);
    in_vain_ = result.branches == 0 && is_ended ? in_vain_ + 1 : 0;
    if (result.is_broken && ftruncate(descriptors_.reports, area_->reports_before) != 0) {
        return {};
    }
    return result;
}

void BranchSeries::confine() {
    // A child that is ended leaves no core file.
    const rlimit none{0, 0};
    struct sigaction before {};
    struct sigaction trap {};
    trap.sa_sigaction = on_trap;
    trap.sa_flags = SA_SIGINFO | SA_ONSTACK;
    confined_area = area_.get();
    ConfinedCalls calls(descriptors_);
    if (sigaction(SIGSYS, nullptr, &before) != 0 || before.sa_handler != SIG_DFL ||
        !area_->checkpoint.prepare() || setrlimit(RLIMIT_CORE, &none) != 0 ||
        sigaction(SIGSYS, &trap, nullptr) != 0 || !calls.confine()) {
        end();
    }
}

BranchSeries::Ended BranchSeries::next() {
    switch (area_->checkpoint.take()) {
        case Checkpoint::Taken::kNow:
            return {};
        case Checkpoint::Taken::kBefore:
            return {{area_->name.data(), area_->name_bytes}, area_->status};
        case Checkpoint::Taken::kNot:
            break;
    }
    end();
}

std::uint32_t BranchSeries::branches_ended() const {
    return area_->ended;
}

void BranchSeries::note_end() {
    area_->runs = false;
    ++area_->ended;
}

void BranchSeries::begin_branch(std::string_view name) {
    struct stat reports {};
    if (name.size() > area_->name.size() || fstat(descriptors_.reports, &reports) != 0) {
        end();
    }
    std::ranges::copy(name, area_->name.begin());
    area_->name_bytes = name.size();
    area_->reports_before = reports.st_size;
    ++area_->begun;
    area_->runs = true;
}

void BranchSeries::end() {
    for (;;) {
        kill(getpid(), SIGKILL);
    }
}

void BranchSeries::on_trap(int, siginfo_t* info, void* context) {
    Area& area = *static_cast<Area*>(confined_area);
    const TrappedCall call = trapped_call(*info, context);
    if (call.number == SYS_exit_group && area.runs) {
        constexpr int kExitStatus = 0xFF;
        constexpr int kExitShift = 8;
        area.status = static_cast<int>(call.arguments[0] & kExitStatus) << kExitShift;
        area.checkpoint.go_back();
    } else if (call.number == SYS_mmap || call.number == SYS_munmap) {
        if (const auto result = area.checkpoint.change_mappings(call)) {
            return_from_call(context, *result);
            return;
        }
    }
    end();
}

}  // namespace simverbs::driver
