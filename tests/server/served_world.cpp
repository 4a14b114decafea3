#include "tests/server/served_world.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"

namespace server_test {
namespace {

constexpr int kCannotExecute = 127;
constexpr int kSignalBase = 128;

bool refuse_process_vm() {
    constexpr auto kNumber = static_cast<__u32>(offsetof(seccomp_data, nr));
    std::array<sock_filter, 5> program{{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    }};
    const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment, bool forbid_process_vm) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGPIPE, SIG_DFL);
    for (const std::string& entry : environment) {
        const std::size_t equals = entry.find('=');
        setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
    }
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    if (!forbid_process_vm || refuse_process_vm()) {
        execv(words[0], words.data());
    }
    _exit(kCannotExecute);
}

std::string run(const std::vector<std::string>& command) {
    Process process(command, {});
    std::string text;
    for (std::string line; !(line = process.hear()).empty();) {
        text += line + '\n';
    }
    process.end();
    return text;
}

}  // namespace

Ran run(const std::string& command) {
    Ran ran;
    std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        ran.text.append(buffer.data(), got);
    }
    ran.status = WEXITSTATUS(pclose(pipe));
    return ran;
}

Process::Process(const std::vector<std::string>& command,
                 const std::vector<std::string>& environment, bool forbid_process_vm,
                 const std::string& errors) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    std::signal(SIGPIPE, SIG_IGN);  // a process that has ended is a failed expectation
    EXPECT_EQ(pipe2(in.data(), O_CLOEXEC) | pipe2(out.data(), O_CLOEXEC), 0);
    process_ = fork();
    if (process_ == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        if (!errors.empty()) {
            constexpr mode_t kMode = 0600;
            dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode),
                 STDERR_FILENO);
        }
        become(command, environment, forbid_process_vm);
    }
    ::close(in[0]);
    ::close(out[1]);
    in_ = in[1];
    out_ = out[0];
}

Process::Process(Process&& other) noexcept {
    *this = std::move(other);
}

Process& Process::operator=(Process&& other) noexcept {
    std::swap(process_, other.process_);
    std::swap(in_, other.in_);
    std::swap(out_, other.out_);
    std::swap(heard_, other.heard_);
    std::swap(status_, other.status_);
    return *this;
}

Process::~Process() {
    if (process_ > 0 && !status_) {
        kill(SIGKILL);
        end();
    }
    for (const int descriptor : {in_, out_}) {
        if (descriptor >= 0) {
            ::close(descriptor);
        }
    }
}

void Process::say(const std::string& line) const {
    const std::string whole = line + '\n';
    EXPECT_EQ(write(in_, whole.data(), whole.size()), static_cast<ssize_t>(whole.size())) << line;
}

std::string Process::hear() {
    const auto limit = std::chrono::milliseconds(kPatience);
    std::size_t end = 0;
    while ((end = heard_.find('\n')) == std::string::npos) {
        pollfd look{out_, POLLIN, 0};
        if (poll(&look, 1, static_cast<int>(limit.count())) <= 0) {
            ADD_FAILURE() << "process " << process_ << " says nothing";
            return {};
        }
        std::array<char, 4096> buffer;
        const ssize_t got = read(out_, buffer.data(), buffer.size());
        if (got <= 0) {
            return {};
        }
        heard_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    return line;
}

void Process::kill(int signal) const {
    ::kill(process_, signal);
}

bool Process::ended() {
    int status = 0;
    if (!status_ && waitpid(process_, &status, WNOHANG) == process_) {
        status_ = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
    }
    return status_.has_value();
}

int Process::end() {
    if (in_ >= 0) {
        ::close(std::exchange(in_, -1));
    }
    const auto began = std::chrono::steady_clock::now();
    while (!ended()) {
        if (std::chrono::steady_clock::now() - began > kPatience) {
            ADD_FAILURE() << "process " << process_ << " does not end";
            kill(SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return *status_;
}

ServedWorld::ServedWorld(const std::string& topology, bool forbid_process_vm,
                         const std::vector<std::string>& options)
    : clients_copy_(forbid_process_vm) {
    std::string folder = std::filesystem::temp_directory_path() / "simverbs-test-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    socket_ = folder_ + "/world.sock";
    std::vector<std::string> command = {SIMVERBS_COMMAND, "up",      topology,
                                        "--foreground",   "--world", socket_};
    command.insert(command.end(), options.begin(), options.end());
    server_ = Process(command, {}, forbid_process_vm, folder_ + "/errors");
    const auto began = std::chrono::steady_clock::now();
    int connection = -1;
    while ((connection = simverbs::connect_to_world(socket_).value_or(-1)) < 0 &&
           !server_.ended() && std::chrono::steady_clock::now() - began < kPatience) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(connection, 0) << "no server listens";
    ::close(connection);
}

ServedWorld::~ServedWorld() {
    server_.kill(SIGTERM);
    if (server_.end() != 0) {
        std::fputs(complaints().c_str(), stderr);  // a sanitizer's, say
    }
    std::filesystem::remove_all(folder_);
}

Process ServedWorld::client(const std::string& host) const {
    std::vector<std::string> environment = {"SIMVERBS_SERVER=" + socket_, "SIMVERBS_HOST=" + host};
    if (clients_copy_) {
        environment.emplace_back("VERBS_CLIENT_MEMORY=of others, too");
    }
    return {{SIMVERBS_VERBS_CLIENT}, environment};
}

std::string ServedWorld::status() const {
    return run({SIMVERBS_COMMAND, "status", "--world", socket_});
}

std::string ServedWorld::complaints() const {
    std::ifstream file(folder_ + "/errors");
    return {std::istreambuf_iterator<char>(file), {}};
}

bool ServedWorld::complains_at_last(const std::string& words) const {
    const auto began = std::chrono::steady_clock::now();
    while (complaints().find(words) == std::string::npos) {
        if (std::chrono::steady_clock::now() - began > kPatience) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

bool ServedWorld::loses(const std::string& word) const {
    const auto began = std::chrono::steady_clock::now();
    while (status().find(word) != std::string::npos) {
        if (std::chrono::steady_clock::now() - began > kPatience) {
            return false;
        }
    }
    return true;
}

// The server may still be closing the connection that the last status came by: looks until two
// looks agree.
Holdings ServedWorld::holdings() const {
    Holdings last = look();
    while (true) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const Holdings now = look();
        if (now.descriptors == last.descriptors && now.mappings == last.mappings) {
            return now;
        }
        last = now;
    }
}

Holdings ServedWorld::look() const {
    const std::string proc = "/proc/" + std::to_string(server_.id());
    Holdings holdings;
    holdings.descriptors = static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(proc + "/fd"), {}));
    std::ifstream maps(proc + "/maps");
    for (std::string line; std::getline(maps, line);) {
        ++holdings.mappings;
    }
    std::ifstream status(proc + "/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmRSS:")) {
            std::istringstream(line.substr(line.find(':') + 1)) >> holdings.resident_kib;
        }
    }
    return holdings;
}

Couple::Couple(const ServedWorld& world, const std::string& first, const std::string& second)
    : a(world.client(first)), b(world.client(second)) {
    const std::string line_a = a.hear();
    const std::string line_b = b.hear();
    EXPECT_EQ(a.ask("connect " + line_b), "connected");
    EXPECT_EQ(b.ask("connect " + line_a), "connected");
}

void Couple::begin() const {
    a.say("exchange");
    b.say("exchange");
}

bool Couple::finish() {
    a.say("stop");
    const std::string rounds = a.hear();
    EXPECT_TRUE(rounds.starts_with("exchanged ")) << rounds;
    EXPECT_EQ(b.hear(), rounds);
    const int status_a = a.end();
    const int status_b = b.end();
    EXPECT_EQ(status_a, 0);
    EXPECT_EQ(status_b, 0);
    return rounds.starts_with("exchanged ") && status_a == 0 && status_b == 0;
}

}  // namespace server_test
