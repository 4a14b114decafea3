#include "scenarios/engine/process_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scenarios {

namespace {

void write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
        if (written <= 0 && errno != EINTR) {
            return;
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
}

// The signals that the command wants to hear of end its pieces.
void end_by_signals_again() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) {
            std::signal(signal, SIG_DFL);
        }
    }
}

constexpr int kLookMs = 250;
constexpr auto kEndWithin = std::chrono::seconds(2);

}  // namespace

ProcessPool::ProcessPool(unsigned jobs, std::chrono::milliseconds limit, Look look)
    : jobs_(std::max(jobs, 1U)), limit_(limit), look_(std::move(look)) {
    void* const shared = mmap(nullptr, jobs_ * sizeof(Reached), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    meters_ = shared == MAP_FAILED ? nullptr : new (shared) Reached[jobs_]{};
}

ProcessPool::~ProcessPool() {
    for (Child& child : children_) {
        kill(child.process, SIGKILL);
        finish(child);
    }
    if (meters_ != nullptr) {
        munmap(meters_, jobs_ * sizeof(Reached));
    }
}

std::int64_t ProcessPool::reached() const {
    return children_.size() == 1 && children_[0].reached != nullptr
               ? children_[0].reached->load(std::memory_order_relaxed)
               : 0;
}

std::vector<ProcessPool::Done> ProcessPool::stop() {
    stopped_ = true;
    for (const Child& child : children_) {
        kill(child.process, SIGTERM);
    }
    std::vector<Done> left;
    const auto end = Clock::now() + kEndWithin;
    for (Child& child : children_) {
        bool has_ended = false;
        while (!has_ended) {
            pollfd wanted{child.results, POLLIN, 0};
            const auto time =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(time, 0)));
            if (ready < 0 && errno == EINTR) {
                continue;  // the signal that ends the command came once more
            }
            if (ready != 1) {
                kill(child.process, SIGKILL);
                break;
            }
            has_ended = !read_some(child);
        }
        if (Done done = finish(child); has_ended && done.error.empty()) {
            left.push_back(std::move(done));
        }
    }
    children_.clear();
    refused_.clear();
    return left;
}

bool ProcessPool::read_some(Child& child) {
    char block[65536];
    const ssize_t got = read(child.results, block, sizeof block);
    child.text.append(block, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return got > 0;
}

void ProcessPool::start(std::size_t id, const Work& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        refused_.push_back({id, {}, fmt::format("no process for it: {}", std::strerror(errno))});
        return;
    }
    Reached* meter = meters_;
    while (meter != nullptr &&
           std::ranges::find(children_, meter, &Child::reached) != children_.end()) {
        ++meter;
    }
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) {
        end_by_signals_again();
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what it leaves
        close(ends[0]);
        Reached unseen{0};
        write_all(ends[1], work(meter == nullptr ? unseen : *meter));
        _exit(0);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        refused_.push_back({id, {}, fmt::format("no process for it: {}", std::strerror(errno))});
        return;
    }
    if (meter != nullptr) {
        meter->store(0, std::memory_order_relaxed);
    }
    children_.push_back({id, process, ends[0], meter, {}, Clock::now()});
}

ProcessPool::Done ProcessPool::finish(Child& child) {
    close(child.results);
    int status = 0;
    while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) {
        return {child.id, std::move(child.text), {}};
    }
    std::string error = fmt::format("its process ended with {}", WEXITSTATUS(status));
    if (child.late) {
        error = "it took too long, and was killed";
    } else if (WIFSIGNALED(status)) {
        error = fmt::format("its process died of {}", strsignal(WTERMSIG(status)));
    }
    return {child.id, {}, std::move(error)};
}

int ProcessPool::patience() const {
    if (limit_ == kNoLimit) {
        return look_ ? kLookMs : -1;
    }
    auto left = limit_;
    for (const Child& child : children_) {
        const auto used =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - child.started);
        left = std::min(left, child.late ? limit_ : limit_ - used);
    }
    return static_cast<int>(
        std::clamp<std::chrono::milliseconds::rep>(left.count() + 1, 0, look_ ? kLookMs : 60'000));
}

void ProcessPool::kill_late() {
    for (Child& child : children_) {
        if (limit_ != kNoLimit && !child.late && Clock::now() - child.started >= limit_) {
            child.late = true;
            kill(child.process, SIGKILL);
        }
    }
}

std::vector<ProcessPool::Done> ProcessPool::wait() {
    std::vector<Done> done = std::exchange(refused_, {});
    while (done.empty() && !children_.empty()) {
        std::vector<pollfd> wanted;
        for (const Child& child : children_) {
            wanted.push_back({child.results, POLLIN, 0});
        }
        const int ready = ::poll(wanted.data(), wanted.size(), patience());
        if (look_ && !look_(reached())) {
            return stop();
        }
        kill_late();
        for (std::size_t i = wanted.size(); ready > 0 && i-- > 0;) {
            if (wanted[i].revents == 0) {
                continue;
            }
            if (!read_some(children_[i])) {
                done.push_back(finish(children_[i]));
                children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
            }
        }
    }
    return done;
}

}  // namespace scenarios
