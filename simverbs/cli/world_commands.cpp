#include "simverbs/cli/world_commands.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/core/nearest.hpp"
#include "fabric/topology/generators.hpp"

#include "simverbs/cli/dead_worlds.hpp"
#include "simverbs/cli/end_signals.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/fabric_question.hpp"
#include "simverbs/cli/incomplete_files.hpp"
#include "simverbs/cli/installed_files.hpp"
#include "simverbs/cli/launch.hpp"
#include "simverbs/cli/served_scenario.hpp"
#include "simverbs/cli/unreachable_program.hpp"
#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/text_table.hpp"

#include "scenarios/engine/scenario.hpp"

namespace simverbs::cli {
namespace {

using Json = nlohmann::ordered_json;

Server* g_server = nullptr;
volatile std::sig_atomic_t g_signal = 0;  // the first that ended the server

void stop_server(int signal) {
    if (g_signal == 0) {
        g_signal = signal;
    }
    if (g_server != nullptr) {
        g_server->stop();
    }
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

// Serves until the world is ended by a request, which is kPassed, or by a signal.
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
    return g_signal == 0 ? kPassed : kSignalled + static_cast<int>(g_signal);
}

// Says so where named worlds are not in the folder that the environment names.
void complain_of_runtime_folder(const std::string& socket) {
    const char* const named = std::getenv("XDG_RUNTIME_DIR");
    const std::string fallback = fmt::format("/tmp/simverbs-{}/", geteuid());
    if (named != nullptr && *named != '\0' && socket.starts_with(fallback) &&
        !fallback.starts_with(fmt::format("{}/", named))) {
        complain(fmt::format("XDG_RUNTIME_DIR='{}' is no folder of this user; worlds are in {}",
                             named, fallback),
                 kPassed);
    }
}

// Forks; the parent returns once the child listens, the child serves and never returns.
int serve_in_background(const MakeServer& make) {
    std::array<int, 2> ready{};
    if (pipe2(ready.data(), O_CLOEXEC) != 0) {
        return complain(fmt::format("pipe: {}", std::strerror(errno)), kFailed);
    }
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        block_end_signals(SIG_BLOCK);
        MadeServer server = make();
        if (!server) {
            const std::string& error = server.error();
            [[maybe_unused]] const ssize_t told = write(ready[1], error.data(), error.size());
            _exit(kFailed);
        }
        close(ready[1]);
        const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            dup2(nowhere, standard);
        }
        const int status = serve(**server);
        server->reset();  // its socket and files go with it
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
        return complain(error, kUsage);
    }
    return 0;
}

template <class Reply, class Request>
fabric::Outcome<Reply> ask(const std::string& socket, const Request& request) {
    const auto connection = connect_to_world(socket);
    if (!connection) {
        return fabric::Failure(connection.error());
    }
    Reply reply;
    // A server that hangs up leaves its reason, if it has one, to be read.
    static_cast<void>(send_message(*connection, std::as_bytes(std::span(&request, 1)), {}));
    std::string refused = receive_first_reply(
        *connection, std::as_writable_bytes(std::span(&reply, 1)), {}, socket, Patience::kCommand);
    close(*connection);
    if (!refused.empty()) {
        return fabric::Failure(std::move(refused));
    }
    reply.text.back() = '\0';
    return reply;
}

bool is_same_letter(char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
}

// `: did you mean "h0"?` of a list such as "h0, h1, ..."; "" where none is near. In short names a
// letter more or less is another host: there the case alone may differ.
std::string nearest_of(std::string_view hosts, std::string_view host) {
    std::vector<std::string_view> names;
    while (!hosts.empty()) {
        const std::size_t end = std::min(hosts.find(", "), hosts.size());
        names.push_back(hosts.substr(0, end));
        hosts.remove_prefix(std::min(end + 2, hosts.size()));
    }
    constexpr std::size_t kShort = 3;
    std::erase_if(names, [host](std::string_view name) {
        return host.size() <= kShort && !std::ranges::equal(name, host, is_same_letter);
    });
    return fabric::suggestion(host, names);
}

}  // namespace

WorldCommands::WorldCommands(CLI::App& app, std::string& world, std::vector<std::string> program)
    : world_(world),
      up_(app.add_subcommand("up", "Serve a world in the background")),
      on_(app.add_subcommand("on", "Run a program on a host of a served world")),
      program_(std::move(program)),
      status_(app.add_subcommand("status", "What served worlds are doing")),
      down_(app.add_subcommand("down", "End a served world")) {
    CLI::Option* const topology = up_->add_option(
        "topology", server_.simulation.topology, "a file, or " + std::string(fabric::generators()));
    topology->type_name("TOPOLOGY")->default_str("");
    take_installed_files(*topology);
    // A scenario has no key for --sm and --routing, which therefore remain options beside it.
    add_scenario_or_world_options(
        *up_, scenario_, "instead of TOPOLOGY: says what fabric there is and what goes wrong",
        server_, [](const SettingRow& row) { return !row.key.empty(); })
        ->excludes(topology);
    up_->add_flag("--foreground", foreground_, "stay, and print a summary at the end");
    on_->add_option("host", host_, "a host of its topology")->type_name("HOST")->required();
    // For --help alone: take_program() has taken these words before.
    on_->add_option("program", program_, "the program and its arguments, all that follows HOST")
        ->type_name("WORD");
    status_->add_flag("-v,--verbose", verbose_, "what each queue pair waits for, too");
    status_->add_flag("--json", as_json_, "for programs: a line for each world")
        ->excludes("--verbose");
    down_->add_flag("--force", force_, "although programs are attached: they lose their devices");
    for (CLI::App* const each : {up_, on_, down_}) {
        add_world(*each, world);
    }
    add_world(*status_, world)->default_str("all worlds");
}

bool WorldCommands::is_chosen() const {
    return up_->parsed() || on_->parsed() || status_->parsed() || down_->parsed();
}

int WorldCommands::run() {
    if (status_->parsed() && status_->get_option("--world")->count() == 0) {
        return list();
    }
    socket_ = socket_path(world_);
    if (clear_dead_world(socket_) && !up_->parsed()) {
        return kUsage;
    }
    return up_->parsed()       ? up()
           : on_->parsed()     ? on()
           : status_->parsed() ? status(world_)
                               : down();
}

int WorldCommands::up() {
    if (library_folder().empty()) {
        return complain(kNoLibrary, kFailed);
    }
    server_.socket = socket_;
    if (!scenario_.file.empty()) {
        return up_with_scenario();
    }
    if (up_->get_option("topology")->count() == 0) {
        return complain(
            "up needs a topology or a scenario: simverbs up star:2, or simverbs up --scenario FILE",
            kUsage);
    }
    return serve_world(server_.simulation.topology, [this] { return Server::make(server_); });
}

int WorldCommands::up_with_scenario() {
    const auto scenario = scenarios::load(scenario_.file, scenario_.settings);
    if (!scenario) {
        return complain(scenario.error(), kUsage);
    }
    if (const std::string operations = describe_operations(*scenario); !operations.empty()) {
        return complain(
            operations +
                "\n(up has no programs of operations; simverbs scenario FILE runs this file)",
            kUsage);
    }
    if (const std::string ignored = describe_ignored(*scenario); !ignored.empty()) {
        complain(ignored, kPassed);
    }
    return serve_world(scenario_.file, [&] { return make_lasting_server(*scenario, server_); });
}

int WorldCommands::serve_world(std::string_view name, const MakeServer& make) const {
    complain_of_runtime_folder(socket_);
    if (!foreground_) {
        const int status = serve_in_background(make);
        if (status == kPassed) {
            fmt::print("{} is up; start programs with: simverbs on{} HOST -- COMMAND\n", name,
                       world_option(socket_));
        }
        return status;
    }
    block_end_signals(SIG_BLOCK);
    const MadeServer server = make();
    if (!server) {
        return complain(server.error(), kUsage);
    }
    const int status = serve(**server);
    const bool complete = complain_of_incomplete(**server);
    fmt::print(stderr, "simverbs: {}\n", (*server)->summary());
    return complete ? status : kFailed;
}

int WorldCommands::on() const {
    if (program_.empty()) {
        return complain(
            fmt::format("on: a program is missing: simverbs on{} {} PROGRAM [ARGUMENT...]",
                        world_option(socket_), host_),
            kUsage);
    }
    if (library_folder().empty()) {
        return complain(kNoLibrary, kFailed);
    }
    const HostPlace place = ask_for_host(socket_, host_);
    if (!place.problem.empty()) {
        return complain(place.problem, kUsage);
    }
    if (!place.is_known) {
        return complain(fmt::format("the world at '{}' has no host '{}'{}; it has {}", socket_,
                                    host_, nearest_of(place.hosts, host_), place.hosts),
                        kUsage);
    }
    if (const std::string why = why_unreachable(program_); !why.empty()) {
        complain(why, kPassed);
    }
    place_environment({socket_, host_, place.devices});
    return run_program(program_);
}

// All worlds; one that is alone in full.
int WorldCommands::list() {
    const std::vector<std::string> names = living_worlds();
    socket_ = socket_path(names.empty() ? std::string(kDefaultWorld) : names.front());
    if (names.size() < 2) {
        if (!as_json_ && !names.empty() && names.front() != kDefaultWorld) {
            fmt::print("world {}\n", names.front());
        }
        return status(names.empty() ? kDefaultWorld : names.front());
    }
    if (as_json_) {
        int worst = kPassed;
        for (const std::string& name : names) {
            socket_ = socket_path(name);
            worst = std::max(worst, status(name));
        }
        return worst;
    }
    std::vector<TableRow> rows{{"world", "what it is"}};
    bool all_answer = true;
    for (const std::string& name : names) {
        const RequestHead request{kProtocolVersion, RequestKind::kStatus};
        const auto reply = ask<TextReply>(socket_path(name), request);
        all_answer = all_answer && reply.has_value();
        const std::string_view said = reply ? reply->text.data() : reply.error().c_str();
        rows.push_back({name, std::string(said.substr(0, said.find('\n')))});
    }
    fmt::print("{}\nof one in full: simverbs status --world NAME\n", text_table(rows));
    return all_answer ? kPassed : kFailed;
}

int WorldCommands::status(std::string_view name) const {
    if (as_json_) {
        FabricRequest asked;
        asked.action = FabricAction::kStatus;
        FabricQuestion question(socket_, asked);
        if (!question.is_asked() || !question.take_answer()) {
            return complain(question.reason(), kUsage);
        }
        const Json answer = Json::parse(question.text(), nullptr, false);
        if (!answer.is_object()) {
            return complain(fmt::format("the world at '{}' answers no JSON object", socket_),
                            kFailed);
        }
        Json status{{"world", name}};
        status.update(answer);
        fmt::print("{}\n", status.dump(-1, ' ', false, Json::error_handler_t::replace));
        return kPassed;
    }
    const RequestHead request{kProtocolVersion,
                              verbose_ ? RequestKind::kReport : RequestKind::kStatus};
    const auto reply = ask<TextReply>(socket_, request);
    if (!reply) {
        return complain(reply.error(), kUsage);
    }
    fmt::print("{}", reply->text.data());
    return kPassed;
}

int WorldCommands::down() const {
    ShutdownRequest request;
    request.force = force_ ? 1 : 0;
    const auto reply = ask<ShutdownReply>(socket_, request);
    if (!reply) {
        return complain(reply.error(), kUsage);
    }
    if (reply->error == EBUSY) {
        return complain(
            fmt::format("programs are attached, and would lose their devices: {}; end them first, "
                        "or use: simverbs down --force{}",
                        reply->text.data(), world_option(socket_)),
            kFailed);
    }
    fmt::print("{}\n", reply->text.data());
    return reply->error == 0 ? kPassed : kFailed;
}

}  // namespace simverbs::cli
