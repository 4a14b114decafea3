#include "simverbs/cli/machine_checks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fabric/core/counted.hpp"
#include "fabric/core/temporary_folder.hpp"

#include "simverbs/cli/kernel_probes.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/library_checks.hpp"
#include "simverbs/cli/settings_trial.hpp"
#include "simverbs/cli/unreachable_program.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/world/environment.hpp"

namespace simverbs::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1U << 20U;

std::string first_line_of(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// Names what may have refused a system call: "Yama, kernel.yama.ptrace_scope = 2; a seccomp
// filter".
std::string describe_guards() {
    std::string text;
    if (const std::string scope = first_line_of("/proc/sys/kernel/yama/ptrace_scope");
        !scope.empty()) {
        text = fmt::format("kernel.yama.ptrace_scope = {}", scope);
    }
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Seccomp:") && line.back() != '0') {
            text += fmt::format("{}a seccomp filter is in force", text.empty() ? "" : "; ");
        }
    }
    return text;
}

// The finding about a kernel call that was tried.
Finding judge(std::string_view subject, std::string_view call, int failure, Weight weight,
              std::string consequence, std::string advice) {
    const std::string guards = describe_guards();
    const std::string behind = guards.empty() ? "" : fmt::format(" ({})", guards);
    if (failure == 0) {
        return {subject, Weight::kFine, fmt::format("{} works{}", call, behind)};
    }
    return {subject, weight,
            fmt::format("{} is refused: {}{}", call, std::strerror(failure), behind),
            std::move(consequence), std::move(advice)};
}

constexpr std::string_view kAllow =
    "allow it in the seccomp profile of the container (docker run --security-opt seccomp=FILE)";

Finding check_process_memory() {
    return judge(
        "process memory", "process_vm_readv", try_memory_of_another_process(), Weight::kNote,
        "a served world has its programs copy their memory themselves, which is slower, and a "
        "fault cannot stop such a program",
        "docker run --cap-add SYS_PTRACE, or sysctl kernel.yama.ptrace_scope=1");
}

Finding check_system_calls() {
    return judge("thread states", "/proc/PID/task/TID/syscall",
                 try_system_call_of_another_process(), Weight::kNote,
                 "a thread that sleeps outside the library counts as running, and time waits for "
                 "it",
                 "docker run --cap-add SYS_PTRACE, or sysctl kernel.yama.ptrace_scope=1");
}

Finding check_sealed_memory() {
    return judge("shared memory", "memfd_create", try_sealed_memory(), Weight::kProblem,
                 "a device cannot be opened, and no world can be served", std::string(kAllow));
}

Finding check_process_descriptors() {
    return judge("process handles", "pidfd_open", try_process_descriptor(), Weight::kProblem,
                 "programs cannot attach to a served world (run, up, on); exec and linked programs "
                 "work",
                 std::string(kAllow) + ", or use a kernel from 5.3 on");
}

Finding check_fixed_addresses() {
    return judge("fixed addresses", "personality(ADDR_NO_RANDOMIZE)", try_fixed_addresses(),
                 Weight::kNote,
                 "simverbs check compares runs with random addresses alone, and finds less",
                 std::string(kAllow));
}

std::string amount(std::uint64_t bytes) {
    return bytes == RLIM_INFINITY ? "unlimited"
           : bytes < kMiB         ? fmt::format("{} KiB", bytes >> 10U)
                                  : fmt::format("{} MiB", bytes >> 20U);
}

Finding check_memlock() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    Finding finding{"locked memory", Weight::kFine,
                    fmt::format("RLIMIT_MEMLOCK (ulimit -l) is {}", amount(limit.rlim_cur))};
    constexpr std::uint64_t kLittle = 16 * kMiB;
    if (environment_value(Setting::kMemlock) != "rlimit") {
        finding.found += "; simverbs counts it with SIMVERBS_MEMLOCK=rlimit alone";
    } else if (limit.rlim_cur < kLittle) {
        finding.weight = Weight::kNote;
        finding.consequence =
            "SIMVERBS_MEMLOCK=rlimit is set: ibv_reg_mr fails with ENOMEM beyond it";
        finding.advice = "ulimit -l unlimited, or unset SIMVERBS_MEMLOCK";
    }
    return finding;
}

// simverbs itself has its segments elsewhere.
Finding check_dev_shm() {
    constexpr const char* kFolder = "/dev/shm";
    constexpr std::uint64_t kOfDocker = 64 * kMiB;
    Finding finding{"/dev/shm"};
    struct statvfs about {};
    const bool is_there = statvfs(kFolder, &about) == 0;
    const std::uint64_t size = about.f_blocks * about.f_frsize;
    if (!is_there || access(kFolder, W_OK) != 0) {
        finding.found = fmt::format("cannot be written: {}", std::strerror(errno));
    } else {
        finding.found =
            fmt::format("{}, {} free", amount(size), amount(about.f_bavail * about.f_frsize));
        if (size == 0 || size > kOfDocker) {
            return finding;
        }
    }
    finding.weight = Weight::kNote;
    finding.consequence =
        "simverbs does not use it; MPI and UCX programs do, and may fail or end by SIGBUS";
    finding.advice = "mount -o remount,size=1G /dev/shm, or docker run --shm-size 1g";
    return finding;
}

Finding check_processors() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    const int count = CPU_COUNT(&allowed);
    Finding finding{
        "processors", Weight::kFine,
        fmt::format("{} to run on", fabric::counted(static_cast<std::size_t>(count), "processor"))};
    if (const std::string quota = first_line_of("/sys/fs/cgroup/cpu.max");
        !quota.empty() && !quota.starts_with("max")) {
        finding.found += fmt::format("; cpu.max of the control group is {}", quota);
    }
    if (count == 1) {
        finding.weight = Weight::kNote;
        finding.consequence =
            "a served world and programs that spin on memory take turns, which is slow; results "
            "are the same";
        finding.advice = "give it a second one, or put all hosts into one process";
    }
    return finding;
}

Finding check_open_files() {
    // Measured: a server has 12 descriptors, and 6 more for each process with queues.
    constexpr rlim_t kOfServer = 12;
    constexpr rlim_t kOfProgram = 6;
    constexpr rlim_t kFew = 256;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    Finding finding{"open files", Weight::kFine,
                    fmt::format("RLIMIT_NOFILE (ulimit -n) is {}", limit.rlim_cur)};
    if (limit.rlim_cur < kFew) {
        finding.weight = limit.rlim_cur < kOfServer + kOfProgram ? Weight::kProblem : Weight::kNote;
        finding.consequence =
            fmt::format("a served world has room for about {} attached processes",
                        limit.rlim_cur < kOfServer ? 0 : (limit.rlim_cur - kOfServer) / kOfProgram);
        finding.advice = "ulimit -n 1024";
    }
    return finding;
}

Finding check_real_devices() {
    std::string names;
    std::error_code none;
    for (const fs::directory_entry& entry : fs::directory_iterator("/sys/class/infiniband", none)) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.path().filename().string());
    }
    return {"real devices", Weight::kFine,
            names.empty() ? "none" : names + "; programs on simverbs do not see them"};
}

Finding check_runtime_folder() {
    const std::string socket = socket_path(std::string(kDefaultWorld));
    const std::string folder = fs::path(socket).parent_path().string();
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    const std::string named = runtime == nullptr ? "" : runtime;
    Finding finding{"runtime folder", Weight::kFine, fmt::format("worlds are in {}", folder)};
    char name[NAME_MAX + 1];
    Distrust why = Distrust::kNone;
    const int opened = open_own_folder_of(socket.c_str(), name, why);
    const int failure = errno;
    const std::string above = fs::path(folder).parent_path().string();
    if (opened >= 0) {
        close(opened);
    } else if (failure != ENOENT || access(above.c_str(), W_OK) != 0) {
        finding.weight = Weight::kProblem;
        finding.found = describe(why, failure == ENOENT ? EACCES : failure, socket);
        finding.consequence = "no world of a name can be served (up, on); run and exec work";
        finding.advice =
            fmt::format("chmod 700 {}, or name a folder of yours by XDG_RUNTIME_DIR", folder);
        return finding;
    }
    if (!named.empty() && !socket.starts_with(named + "/")) {
        finding.weight = Weight::kNote;
        finding.found = fmt::format(
            "XDG_RUNTIME_DIR='{}' is no folder of this user; worlds are in "
            "{}",
            named, folder);
        finding.consequence = "another shell, where it is right, does not see these worlds";
        finding.advice = "unset XDG_RUNTIME_DIR, or name a folder of yours by it";
    }
    return finding;
}

Finding check_temporary_folder() {
    try {
        const fabric::TemporaryFolder tried("simverbs-doctor-");
        return {"temporary files", Weight::kFine, fabric::place_of_temporary_files().string()};
    } catch (const std::system_error& failure) {
        return {"temporary files", Weight::kProblem, failure.what(),
                "run, check, sweep and lab make folders there, and end", "name another by TMPDIR"};
    }
}

Finding check_settings() {
    const std::vector<std::string> mistakes = describe_unknown_variables();
    if (const auto wrong = try_settings().mistakes; !wrong.empty()) {
        const SettingMistake& mistake = wrong.front();
        return {"settings", Weight::kProblem,
                fmt::format("{}={}", row_of(mistake.setting).variable, mistake.what),
                "programs with a world of their own find no device",
                "correct it or unset it; simverbs settings shows all"};
    }
    if (!mistakes.empty()) {
        return {"settings", Weight::kNote, mistakes.front(), "it has no effect",
                "correct it or unset it; simverbs settings shows all"};
    }
    return {"settings", Weight::kFine, "no mistake in variables SIMVERBS_*"};
}

bool is_in_path(std::string_view name) {
    const char* const path = std::getenv("PATH");
    std::string_view list = path == nullptr ? "/bin:/usr/bin" : path;
    for (;;) {
        const std::size_t end = std::min(list.find(':'), list.size());
        const std::string file = fmt::format("{}/{}", list.substr(0, end), name);
        if (access(file.c_str(), X_OK) == 0) {
            return true;
        }
        if (end == list.size()) {
            return false;
        }
        list.remove_prefix(end + 1);
    }
}

Finding check_tools() {
    struct Tool {
        std::string_view program;
        std::string_view package;
        std::string_view without;
    };
    constexpr std::array<Tool, 2> kTools{{
        {"dot", "graphviz", "viz writes diagrams as DOT text alone"},
        {"cc", "gcc", "lab cannot compile answers in C"},
    }};
    Finding finding{"programs", Weight::kFine, ""};
    for (const Tool& tool : kTools) {
        const bool is_there = is_in_path(tool.program);
        finding.found += fmt::format("{}{}{}", finding.found.empty() ? "" : ", ",
                                     is_there ? "" : "no ", tool.program);
        if (!is_there) {
            finding.weight = Weight::kNote;
            finding.consequence +=
                fmt::format("{}{}", finding.consequence.empty() ? "" : "; ", tool.without);
            finding.advice +=
                fmt::format("{}{}", finding.advice.empty() ? "apt install " : " ", tool.package);
        }
    }
    return finding;
}

Finding check_program(const std::vector<std::string>& words) {
    const std::string why = why_unreachable(words);
    return why.empty() ? Finding{"program", Weight::kFine,
                                 fmt::format("nothing keeps {} from the library", words.front())}
                       : Finding{"program", Weight::kProblem, why};
}

}  // namespace

std::vector<Finding> check_machine(const std::vector<std::string>& program) {
    std::vector<Finding> findings = {
        check_parts(),
        check_devices_of_a_program(),
        check_preloaded_libraries(),
        check_library_path(),
        check_settings(),
        check_sealed_memory(),
        check_process_descriptors(),
        check_process_memory(),
        check_system_calls(),
        check_fixed_addresses(),
        check_runtime_folder(),
        check_temporary_folder(),
        check_open_files(),
        check_memlock(),
        check_dev_shm(),
        check_processors(),
        check_real_devices(),
        check_tools(),
    };
    if (!program.empty()) {
        findings.push_back(check_program(program));
    }
    return findings;
}

}  // namespace simverbs::cli
