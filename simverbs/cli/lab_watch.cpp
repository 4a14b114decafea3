#include "simverbs/cli/lab_watch.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simverbs/cli/exit_status.hpp"

#include "tutorials/lab/check.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

// Some editors save in several steps.
constexpr int kSettleMs = 50;
constexpr int kForever = -1;
constexpr std::array<int, 3> kSignals{SIGTERM, SIGHUP, SIGINT};

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// Which file it is and when it was written last.
struct Stamp {
    ino_t number = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
};

Stamp stamp_of(const fs::path& file) {
    struct stat status {};
    return stat(file.c_str(), &status) == 0
               ? Stamp{status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec}
               : Stamp{};
}

// Tells of saves of one file: written in place, or replaced by a new one, as editors do. The kernel
// keeps the saves that come during a check. It drops them where the answer itself writes thousands
// of files, and says so; then the time of the file tells.
class SaveWatch {
  public:
    explicit SaveWatch(const fs::path& file)
        : file_(file),
          name_(file.filename().string()),
          checked_(stamp_of(file)),
          descriptor_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
        if (descriptor_ < 0) {
            fail("inotify_init1");
        }
        const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
        constexpr std::uint32_t kSaves = IN_CLOSE_WRITE | IN_MOVED_TO;
        constexpr std::uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF;
        if (inotify_add_watch(descriptor_, folder.c_str(), kSaves | kGone) < 0) {
            const int error = errno;
            close(descriptor_);
            errno = error;
            fail(folder.c_str());
        }
    }
    ~SaveWatch() { close(descriptor_); }
    SaveWatch(const SaveWatch&) = delete;
    SaveWatch& operator=(const SaveWatch&) = delete;

    [[nodiscard]] bool is_gone() const { return is_gone_; }

    // Waits for the next save; false when the folder is gone or `interruption` has come.
    bool wait(const Interruption& interruption) {
        bool is_saved = false;
        while (!is_gone_) {
            std::array<pollfd, 2> looks{
                {{descriptor_, POLLIN, 0}, {interruption.descriptor(), POLLIN, 0}}};
            const int ready = poll(looks.data(), looks.size(), is_saved ? kSettleMs : kForever);
            if (looks[1].revents != 0) {
                return false;
            }
            if (ready == 0) {
                checked_ = stamp_of(file_);
                return true;
            }
            is_saved = take() || is_saved;
        }
        return false;
    }

  private:
    // Returns true if one of the events is a save.
    bool take() {
        alignas(inotify_event) std::array<char, 4096> buffer;
        bool is_saved = false;
        for (ssize_t got = 0; (got = read(descriptor_, buffer.data(), buffer.size())) > 0;) {
            for (const char* at = buffer.data(); at < buffer.data() + got;) {
                const auto* const event = reinterpret_cast<const inotify_event*>(at);
                is_gone_ = is_gone_ || (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0;
                is_saved = is_saved || (event->len > 0 && name_ == event->name) ||
                           ((event->mask & IN_Q_OVERFLOW) != 0 && stamp_of(file_) != checked_);
                at += sizeof(inotify_event) + event->len;
            }
        }
        return is_saved;
    }

    fs::path file_;
    std::string name_;
    Stamp checked_;  // as it was when the last check began
    int descriptor_;
    bool is_gone_ = false;
};

}  // namespace

Interruption::Interruption() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : kSignals) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) {  // else it stays so, as in a shell's background
            sigaddset(&signals, signal);
        }
    }
    descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) {
        fail("signalfd");
    }
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Interruption::~Interruption() {
    close(descriptor_);
}

int Interruption::signal() const {
    sigset_t pending;
    sigpending(&pending);  // nobody reads the descriptor
    const auto* const come = std::ranges::find_if(
        kSignals, [&pending](int signal) { return sigismember(&pending, signal) == 1; });
    return come == kSignals.end() ? 0 : *come;
}

int check_and_report(const lab::Exercise& exercise, const lab::Toolbox& toolbox,
                     const std::string& file, bool with_pictures) {
    const std::string folder = fs::path(file).parent_path().string();
    const auto checked =
        lab::check(exercise, toolbox, file, with_pictures ? (folder.empty() ? "." : folder) : "");
    if (!checked) {
        return complain(checked.error(), kUsage);
    }
    if (checked->is_interrupted) {
        return complain("interrupted; the answer was not judged", kFailed);
    }
    fmt::print("{}", lab::report(exercise, *checked));
    std::fflush(stdout);
    const bool passed = checked->passed(exercise.rubric);
    if (passed && fs::path(file).stem() == "exercise" && !lab::note_solved(file)) {
        complain("its folder cannot be written, so `lab list` will not show it as solved", kPassed);
    }
    return passed ? kPassed : kFailed;
}

bool watch_answer(const lab::Exercise& exercise, const lab::Toolbox& toolbox,
                  const std::string& file, bool with_pictures, const Interruption& interruption) {
    SaveWatch saves(file);
    fmt::print("Checks {} now and at every save. Ctrl-C ends.\n\n", file);
    std::fflush(stdout);
    do {
        check_and_report(exercise, toolbox, file, with_pictures);
        if (interruption.signal() == 0) {
            fmt::print("\n──── waits for the next save of {}; Ctrl-C ends ────\n\n", file);
            std::fflush(stdout);
        }
    } while (saves.wait(interruption));
    if (!saves.is_gone()) {
        fmt::print("\nNo longer watching {}.\n", file);
    }
    return !saves.is_gone();
}

}  // namespace simverbs::cli
