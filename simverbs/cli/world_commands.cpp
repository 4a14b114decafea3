#include "simverbs/cli/world_commands.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/run_folder.hpp"
#include "simverbs/cli/scenario_processes.hpp"

#include "scenarios/engine/batch.hpp"

namespace simverbs::cli {
namespace {

constexpr int kFailed = 1;
constexpr int kNotFound = 127;

Server* g_server = nullptr;

void stop_server(int /*signal*/) {
    if (g_server != nullptr) {
        g_server->stop();
    }
}

int complain(const std::string& what, int status = kFailed) {
    fmt::print(stderr, "simverbs: {}\n", what);
    return status;
}

bool libraries_found() {
    return !library_folder().empty();
}

// From before anybody can connect until stop_server() stands ready.
void block_end_signals(int how) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : EndSignals::kSignals) {
        sigaddset(&signals, signal);
    }
    sigprocmask(how, &signals, nullptr);
}

int serve(Server& server) {
    g_server = &server;
    struct sigaction action {};
    action.sa_handler = stop_server;
    for (const int signal : EndSignals::kSignals) {
        struct sigaction before {};
        sigaction(signal, nullptr, &before);
        if (before.sa_handler != SIG_IGN) {  // as nohup has it
            sigaction(signal, &action, nullptr);
        }
    }
    block_end_signals(SIG_UNBLOCK);
    server.run();
    g_server = nullptr;
    return 0;
}

// Forks; the parent returns once the child listens, the child serves and never returns.
int serve_in_background(const ServerOptions& options) {
    std::array<int, 2> ready{};
    if (pipe2(ready.data(), O_CLOEXEC) != 0) {
        return complain(fmt::format("pipe: {}", std::strerror(errno)));
    }
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        block_end_signals(SIG_BLOCK);
        std::string error;
        auto server = Server::make(options, error);
        [[maybe_unused]] const ssize_t told = write(ready[1], error.data(), error.size());
        close(ready[1]);
        if (server == nullptr) {
            _exit(kFailed);
        }
        const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            dup2(nowhere, standard);
        }
        const int status = serve(*server);
        server.reset();  // its socket and files go with it
        std::exit(status);
    }
    close(ready[1]);
    std::string error;
    std::array<char, 512> buffer;
    for (ssize_t got = 0; (got = read(ready[0], buffer.data(), buffer.size())) > 0;) {
        error.append(buffer.data(), static_cast<std::size_t>(got));
    }
    close(ready[0]);
    if (!error.empty()) {
        waitpid(child, nullptr, 0);
        return complain(error);
    }
    return 0;
}

// An exit status; what was wrong has been said.
template <class Request, class Reply>
int ask(const std::string& socket, const Request& request, Reply& reply) {
    std::string reason;
    const int connection = connect_to_world(socket, reason);
    if (connection < 0) {
        return complain(reason);
    }
    reason = fmt::format("the world at '{}' does not answer", socket);
    const bool answered =
        send_message(connection, std::as_bytes(std::span(&request, 1)), {}) &&
        receive_first_reply(connection, std::as_writable_bytes(std::span(&reply, 1)), {}, socket,
                            reason);
    close(connection);
    if (!answered) {
        return complain(reason);
    }
    reply.text.back() = '\0';
    return 0;
}

int run_under_scenario(const RunOptions& options, std::vector<ProgramSpec> programs) {
    std::string errors;
    const auto scenario = scenarios::load(options.scenario, options.settings, errors);
    if (!scenario) {
        return complain(errors, kUsage);
    }
    scenarios::Verdict verdict =
        run_processes(*scenario, {std::move(programs), options.time_limit,
                                  options.server.trace_file, options.server.capture_file});
    verdict.replay = "simverbs run --scenario " + options.scenario;
    for (const std::string& word : options.words) {
        verdict.replay += fmt::format(" '{}'", word);
    }
    if (!verdict.error.empty()) {
        return complain(verdict.error, kUsage);
    }
    if (!options.quiet || !verdict.passed()) {
        fmt::print(stderr, "{}", scenarios::report(verdict, options.settings));
    }
    return verdict.passed() ? 0 : kFailed;
}

}  // namespace

int up(UpOptions options) {
    if (!libraries_found()) {
        return complain("libibverbs.so.1 of simverbs is not beside this program");
    }
    if (!options.foreground) {
        const int status = serve_in_background(options.server);
        if (status == 0) {
            fmt::print("{} is up; start programs with: simverbs on HOST -- COMMAND\n",
                       options.server.simulation.topology);
        }
        return status;
    }
    std::string error;
    block_end_signals(SIG_BLOCK);
    const auto server = Server::make(options.server, error);
    if (server == nullptr) {
        return complain(error);
    }
    const int status = serve(*server);
    fmt::print(stderr, "simverbs: {}\n", server->summary());
    return status;
}

int run(RunOptions options) {
    std::vector<ProgramSpec> specs;
    const std::size_t first = options.scenario.empty() ? 1 : 0;
    for (std::size_t i = first; i < options.words.size(); ++i) {
        const std::string& text = options.words[i];
        const std::size_t equals = text.find('=');
        if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
            return complain(fmt::format("'{}' is not HOST=COMMAND", text), kUsage);
        }
        specs.push_back({text.substr(0, equals), text.substr(equals + 1)});
    }
    if (!options.scenario.empty()) {
        return run_under_scenario(options, std::move(specs));
    }
    if (specs.empty()) {
        return complain("run needs a topology and programs: simverbs run star:2 h0='COMMAND' ...",
                        kUsage);
    }
    options.server.simulation.topology = options.words.front();
    if (!libraries_found()) {
        return complain("libibverbs.so.1 of simverbs is not beside this program");
    }
    const EndSignals signals;
    const RunFolder folder;
    if (!folder.error().empty()) {
        return complain(folder.error());
    }
    options.server.socket = folder.socket();
    std::string error;
    const auto server = Server::make(options.server, error);
    if (server == nullptr) {
        return complain(error, kUsage);  // the socket is ours: the options are at fault
    }
    for (const ProgramSpec& spec : specs) {
        if (!server->has_host(spec.host)) {
            return complain(fmt::format("topology '{}' has no host '{}'",
                                        options.server.simulation.topology, spec.host),
                            kUsage);
        }
    }
    server->expect_programs(specs.size());
    std::thread serving([&server] { server->run(); });
    int status = kFailed;
    {
        Programs programs(*server, folder, std::move(specs));
        status = programs.run(options.time_limit);
    }
    server->stop();
    serving.join();
    if (!options.quiet) {
        fmt::print(stderr, "simverbs: {}\n", server->summary());
    }
    return status;
}

int on(const std::string& socket, const std::string& host,
       const std::vector<std::string>& command) {
    if (!libraries_found()) {
        return complain("libibverbs.so.1 of simverbs is not beside this program");
    }
    std::string reason;
    const int connection = connect_to_world(socket, reason);
    if (connection < 0) {
        return complain(reason);
    }
    close(connection);
    const HostPlace place = ask_for_host(socket, host);
    if (!place.is_known) {
        return complain(
            fmt::format("the world at '{}' has no host '{}'; it has {}", socket, host, place.hosts),
            kUsage);
    }
    place_environment({socket, host, place.devices});
    run_program(command);
    return complain(fmt::format("{}: {}", command[0], std::strerror(errno)), kNotFound);
}

int status(const std::string& socket, bool verbose) {
    const RequestHead request{kProtocolVersion,
                              verbose ? RequestKind::kReport : RequestKind::kStatus};
    TextReply reply;
    if (const int status = ask(socket, request, reply); status != 0) {
        return status;
    }
    fmt::print("{}", reply.text.data());
    return 0;
}

int down(const std::string& socket, bool force) {
    ShutdownRequest request;
    request.force = force ? 1 : 0;
    ShutdownReply reply;
    if (const int status = ask(socket, request, reply); status != 0) {
        return status;
    }
    if (reply.error != 0) {
        return complain(
            fmt::format("programs are attached, and would lose their devices: {}; end "
                        "them first, or use --force",
                        reply.text.data()));
    }
    fmt::print("{}\n", reply.text.data());
    return 0;
}

}  // namespace simverbs::cli
