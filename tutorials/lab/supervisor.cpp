#include "tutorials/lab/supervisor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simverbs::lab {
namespace {

using Kind = SupervisorReport::Kind;

constexpr rlim_t kMostOfFile = rlim_t{1} << 30;  // bytes
constexpr rlim_t kMostNewTasks = 512;
constexpr int kMostRounds = 3000;  // of a millisecond, for processes that start others as they die

void tell(const Supervised& supervised, Kind kind, int number) {
    const SupervisorReport report{kind, number};
    static_cast<void>(write(supervised.reports, &report, sizeof report) == sizeof report);
}

// Makes this process end with its parent, which is `parent`.
void end_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
}

// Returns how many processes and threads this machine has, by the fourth field of /proc/loadavg,
// "3/1234"; 0 where it cannot be read.
rlim_t count_tasks() {
    std::array<char, 256> text;
    const int file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    const ssize_t got = read(file, text.data(), text.size());
    close(file);
    const char* const end = text.data() + std::max<ssize_t>(0, got);
    rlim_t number = 0;
    for (const char* at = std::find<const char*>(text.data(), end, '/'); at != end && *at != ' ';
         ++at) {
        number = *at == '/' ? 0 : number * 10 + static_cast<rlim_t>(*at - '0');
    }
    return number;
}

void set_limit(decltype(RLIMIT_CORE) resource, rlim_t most) {
    rlimit limit{};
    getrlimit(resource, &limit);
    limit.rlim_max = std::min(limit.rlim_max, most);
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    setrlimit(resource, &limit);
}

// A mistake is not to stop the machine: no file fills the disk, no loop of fork() the table of
// processes. The kernel counts the processes of the user, those of other programs too, and none
// where that is root.
void set_limits() {
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, kMostOfFile);
    if (const rlim_t tasks = count_tasks(); tasks > 0) {
        set_limit(RLIMIT_NPROC, tasks + kMostNewTasks);
    }
}

// The kernel looks for memory here first when there is none.
void offer_memory() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    static_cast<void>(write(file, "1000", 4) == 4);
    close(file);
}

[[noreturn]] void become(const Supervised& supervised, pid_t supervisor) {
    end_with(supervisor);
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    set_limits();
    offer_memory();
    dup2(supervised.output, STDOUT_FILENO);
    dup2(supervised.errors, STDERR_FILENO);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    tell(supervised, Kind::kStarting, getpid());
    if (supervised.folder == nullptr || chdir(supervised.folder) == 0) {
        execvpe(supervised.arguments[0], supervised.arguments, supervised.variables);
    }
    tell(supervised, Kind::kNotStarted, errno);
    _exit(1);
}

// Kills the children of this process, by the list of proc(5): numbers, each with a blank behind it.
void kill_children() {
    const int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    std::array<char, 4096> text;
    pid_t child = 0;
    for (ssize_t got = 0; (got = read(list, text.data(), text.size())) > 0;) {
        for (const char* at = text.data(); at < text.data() + got; ++at) {
            if (*at >= '0' && *at <= '9') {
                child = child * 10 + (*at - '0');
            } else if (child > 0) {
                kill(child, SIGKILL);
                child = 0;
            }
        }
    }
    close(list);
}

// Ends the program and all that it started, and returns the status of the program. Who loses its
// parent becomes a child of this process, so that the rounds reach all.
int end_all(pid_t program) {
    int status_of_program = SIGKILL;
    kill(-program, SIGKILL);
    for (int round = 0; round < kMostRounds; ++round) {
        kill_children();
        int status = 0;
        pid_t ended = 0;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0) {
            status_of_program = ended == program ? status : status_of_program;
        }
        if (ended < 0) {
            break;  // there is none
        }
        poll(nullptr, 0, 1);
    }
    return status_of_program;
}

// Buries what ended, save the program. Returns true if that has ended.
bool has_ended(pid_t program) {
    siginfo_t about{};
    while (waitid(P_ALL, 0, &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0) {
        if (about.si_pid == program) {
            return true;
        }
        waitpid(about.si_pid, nullptr, 0);
        about = {};
    }
    return false;
}

}  // namespace

void supervise(const Supervised& supervised) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody learns how a child ended
    end_with(supervised.owner);
    setsid();  // no signal to the command's group, or from its terminal, is for the program
    prctl(PR_SET_NAME, "simverbs-lab");
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigset_t of_children;
    sigemptyset(&of_children);
    sigaddset(&of_children, SIGCHLD);
    const int deaths = signalfd(-1, &of_children, SFD_CLOEXEC | SFD_NONBLOCK);
    const pid_t self = getpid();
    const pid_t program = deaths < 0 ? -1 : fork();
    if (program < 0) {
        tell(supervised, Kind::kNotStarted, errno);
        tell(supervised, Kind::kEnded, 0);
        _exit(1);
    }
    if (program == 0) {
        become(supervised, self);
    }
    setpgid(program, program);
    std::array<pollfd, 2> looks{{{deaths, POLLIN, 0}, {supervised.stop, POLLIN, 0}}};
    while (!has_ended(program) && looks[1].revents == 0) {
        poll(looks.data(), looks.size(), -1);
        signalfd_siginfo death;
        static_cast<void>(read(deaths, &death, sizeof death) == sizeof death);
    }
    tell(supervised, Kind::kEnded, end_all(program));
    _exit(0);
}

}  // namespace simverbs::lab
