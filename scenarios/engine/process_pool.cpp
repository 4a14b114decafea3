#include "scenarios/engine/process_pool.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scenarios {

namespace {

bool write_all(int descriptor, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
        if (written <= 0 && errno != EINTR) {
            return false;
        }
        done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
    }
    return true;
}

// A message of a process: its text behind the text's length.
using Length = std::uint64_t;
std::string message_of(const std::string& text) {
    const Length length = text.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}
bool is_whole(const std::string& message) {
    Length length = 0;
    if (message.size() < sizeof length) {
        return false;
    }
    std::memcpy(&length, message.data(), sizeof length);
    return message.size() - sizeof length >= length;
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

ProcessPool::ProcessPool(Work work, const Options& options, Look look)
    : work_(std::move(work)), options_(options), look_(std::move(look)) {
    options_.jobs = std::max(options_.jobs, 1U);
    void* const shared = mmap(nullptr, options_.jobs * sizeof(Reached), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    meters_ = shared == MAP_FAILED ? nullptr : new (shared) Reached[options_.jobs]{};
}

ProcessPool::~ProcessPool() {
    for (Child& child : children_) {
        kill(child.process, SIGKILL);
        finish(child);
    }
    if (meters_ != nullptr) {
        munmap(meters_, options_.jobs * sizeof(Reached));
    }
}

std::size_t ProcessPool::working() const {
    return static_cast<std::size_t>(std::ranges::count(children_, true, &Child::works));
}

std::int64_t ProcessPool::reached() const {
    const auto child = std::ranges::find(children_, true, &Child::works);
    return working() == 1 && child->reached != nullptr
               ? child->reached->load(std::memory_order_relaxed)
               : 0;
}

void ProcessPool::erase_gone() {
    std::erase_if(children_, [](const Child& child) { return child.process == kGone; });
}

std::vector<ProcessPool::Done> ProcessPool::stop() {
    stopped_ = true;
    for (const Child& child : children_) {
        kill(child.process, SIGTERM);
    }
    std::vector<Done> left;
    const auto end = Clock::now() + kEndWithin;
    for (Child& child : children_) {
        while (child.works && child.process != kGone) {
            pollfd wanted{child.socket, POLLIN, 0};
            const auto time =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            const int ready = ::poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(time, 0)));
            if (ready < 0 && errno == EINTR) {
                continue;  // the signal that ends the command came once more
            }
            if (ready != 1) {
                break;
            }
            if (auto done = receive(child); done && done->error.empty()) {
                left.push_back(std::move(*done));
            }
        }
        if (child.process != kGone) {
            kill(child.process, SIGKILL);
            finish(child);
        }
    }
    children_.clear();
    refused_.clear();
    return left;
}

void ProcessPool::start(std::size_t id) {
    if (!give(id)) {
        add_or_refuse(id);
    }
}

void ProcessPool::add_or_refuse(std::size_t id) {
    if (const int error = add(id); error != 0) {
        refused_.push_back({id, {}, fmt::format("no process for it: {}", std::strerror(error))});
    }
}

bool ProcessPool::give(std::size_t id) {
    bool given = false;
    for (Child& child : children_) {
        if (given || child.works) {
            continue;
        }
        if (child.reached != nullptr) {
            child.reached->store(0, std::memory_order_relaxed);
        }
        if (send(child.socket, &id, sizeof id, MSG_NOSIGNAL) != sizeof id) {
            finish(child);  // somebody has ended it meanwhile
            continue;
        }
        child.id = id;
        child.started = Clock::now();
        child.works = true;
        --child.left;
        given = true;
    }
    erase_gone();
    return given;
}

int ProcessPool::add(std::size_t id) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return errno;
    }
    Reached* meter = meters_;
    while (meter != nullptr &&
           std::ranges::find(children_, meter, &Child::reached) != children_.end()) {
        ++meter;
    }
    if (meter != nullptr) {
        meter->store(0, std::memory_order_relaxed);
    }
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        Reached unseen{0};
        work(id, ends[1], meter == nullptr ? unseen : *meter);
    }
    const int error = process < 0 ? errno : 0;
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return error;
    }
    children_.push_back(
        {id, process, ends[0], meter, Clock::now(), options_.pieces_of_process - 1});
    return 0;
}

void ProcessPool::work(std::size_t id, int socket, Reached& reached) const {
    end_by_signals_again();
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read what it leaves
    std::size_t left = options_.pieces_of_process;
    ssize_t got = sizeof id;
    while (got == sizeof id && write_all(socket, message_of(work_(id, reached))) && --left > 0) {
        do {
            got = read(socket, &id, sizeof id);
        } while (got < 0 && errno == EINTR);
    }
    _exit(0);
}

std::optional<ProcessPool::Done> ProcessPool::receive(Child& child) {
    char block[65536];
    const ssize_t got = read(child.socket, block, sizeof block);
    if (got < 0 && errno == EINTR) {
        return std::nullopt;
    }
    if (got <= 0) {
        std::string error = finish(child);
        return Done{child.id, {}, std::move(error)};
    }
    child.received.append(block, static_cast<std::size_t>(got));
    if (!is_whole(child.received)) {
        return std::nullopt;
    }
    child.works = false;
    if (child.left == 0 || child.late) {
        finish(child);
    }
    return Done{child.id, std::exchange(child.received, {}).substr(sizeof(Length)), {}};
}

std::string ProcessPool::finish(Child& child) {
    close(child.socket);
    int status = 0;
    while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
    }
    child.process = kGone;
    child.works = false;
    if (child.late) {
        return "it took too long, and was killed";
    }
    if (WIFSIGNALED(status)) {
        return fmt::format("its process died of {}", strsignal(WTERMSIG(status)));
    }
    return fmt::format("its process ended with {}", WEXITSTATUS(status));
}

int ProcessPool::patience() const {
    if (options_.limit == kNoLimit) {
        return look_ ? kLookMs : -1;
    }
    auto left = options_.limit;
    for (const Child& child : children_) {
        const auto used =
            std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - child.started);
        left = std::min(left, child.late || !child.works ? options_.limit : options_.limit - used);
    }
    return static_cast<int>(
        std::clamp<std::chrono::milliseconds::rep>(left.count() + 1, 0, look_ ? kLookMs : 60'000));
}

void ProcessPool::kill_late() {
    for (Child& child : children_) {
        if (options_.limit != kNoLimit && child.works && !child.late &&
            Clock::now() - child.started >= options_.limit) {
            child.late = true;
            kill(child.process, SIGKILL);
        }
    }
}

std::vector<ProcessPool::Done> ProcessPool::wait() {
    std::vector<Done> done = std::exchange(refused_, {});
    while (done.empty() && working() > 0) {
        std::vector<std::size_t> again;
        std::vector<pollfd> wanted;
        for (const Child& child : children_) {
            wanted.push_back({child.works ? child.socket : -1, POLLIN, 0});
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
            const Child& child = children_[i];
            const bool came_first = child.left + 1 == options_.pieces_of_process;
            if (auto piece = receive(children_[i])) {
                if (piece->error.empty() || came_first || child.late) {
                    done.push_back(std::move(*piece));
                } else {
                    again.push_back(piece->id);
                }
            }
        }
        erase_gone();
        for (const std::size_t id : again) {
            add_or_refuse(id);
        }
        std::ranges::move(std::exchange(refused_, {}), std::back_inserter(done));
    }
    return done;
}

}  // namespace scenarios
