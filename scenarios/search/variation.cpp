#include "scenarios/search/variation.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace scenarios {

namespace {

constexpr int kNotFound = 127;  // as shells have it
constexpr auto kTimeForReport = std::chrono::milliseconds(500);

void keep_one_processor() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (CPU_ISSET(processor, &allowed)) {
            CPU_ZERO(&allowed);
            CPU_SET(processor, &allowed);
            sched_setaffinity(0, sizeof allowed, &allowed);
            return;
        }
    }
}

void vary(const Variation& variation) {
    if (variation.fixed_addresses) {
        personality(ADDR_NO_RANDOMIZE);
    }
    if (variation.one_processor) {
        keep_one_processor();
    }
    if (variation.other_memory) {
        constexpr std::size_t kPadding = 9001;
        setenv("MALLOC_PERTURB_", "165", 1);
        setenv("MALLOC_ARENA_MAX", "1", 1);
        setenv("MALLOC_TOP_PAD_", "65536", 1);
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        setenv("SIMVERBS_PADDING", std::string(kPadding, '.').c_str(), 1);
    }
}

[[noreturn]] void become(const std::vector<std::string>& command, const Variation& variation,
                         const Environment& environment, int output) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    vary(variation);
    for (const auto& [name, value] : environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    execvp(words[0], words.data());
    dprintf(STDERR_FILENO, "%s: %s\n", words[0], std::strerror(errno));
    _exit(kNotFound);
}

// Returns false if the time is over before the process ends. The process is not waited for.
bool ends_within(pid_t process, std::chrono::milliseconds limit) {
    // The header of glibc 2.36 declares no function for C++.
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (descriptor < 0) {
        return true;  // the kernel has no such descriptors: without a limit
    }
    pollfd wanted{descriptor, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + limit;
    int ready = -1;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        ready = poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    } while (ready < 0 && errno == EINTR);
    close(descriptor);
    return ready != 0;
}

}  // namespace

const std::vector<Variation>& variations() {
    static const std::vector<Variation> kAll = {
        {.name = "as it is"},
        {.name = "fixed addresses", .fixed_addresses = true},
        {.name = "one processor", .one_processor = true},
        {.name = "other memory", .other_memory = true},
    };
    return kAll;
}

bool Ended::was_not_found() const {
    return error.empty() && WIFEXITED(status) && WEXITSTATUS(status) == kNotFound;
}

std::string Ended::in_words() const {
    if (!error.empty()) {
        return error;
    }
    return WIFSIGNALED(status) ? fmt::format("it died of {}", strsignal(WTERMSIG(status)))
                               : fmt::format("it ended with {}", WEXITSTATUS(status));
}

Ended run_program(const std::vector<std::string>& command, const Variation& variation,
                  const Environment& environment, const std::string& output_file,
                  std::chrono::milliseconds limit) {
    Ended ended;
    const int output =
        open(output_file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    const pid_t process = output < 0 ? -1 : fork();
    if (process == 0) {
        become(command, variation, environment, output);
    }
    if (process < 0) {
        ended.error = fmt::format("it cannot be started: {}", std::strerror(errno));
    }
    if (output >= 0) {
        close(output);
    }
    if (process > 0 && limit != kNoTimeLimit && !ends_within(process, limit)) {
        ended.is_late = true;
        kill(process, SIGUSR2);
        ends_within(process, kTimeForReport);
        kill(process, SIGKILL);
    }
    while (process > 0 && waitpid(process, &ended.status, 0) < 0 && errno == EINTR) {
    }
    std::ifstream in(output_file);
    ended.output.assign(std::istreambuf_iterator<char>(in), {});
    return ended;
}

}  // namespace scenarios
