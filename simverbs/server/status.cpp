// Who uses a served world, and what `simverbs status` shows of it.
#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "simverbs/server/report_json.hpp"
#include "simverbs/server/server.hpp"
#include "simverbs/world/hang_report.hpp"

namespace simverbs {
namespace {

// Returns the name that the kernel has for the program of a process, in printable characters.
std::string program_of(pid_t process) {
    std::string program;
    std::getline(std::ifstream(fmt::format("/proc/{}/comm", process)), program);
    std::replace_if(
        program.begin(), program.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return program;
}

}  // namespace

// The processes that are attached or have a device open in /dev, by host: each once.
std::vector<Server::User> Server::users() const {
    std::vector<User> all;
    for (std::size_t i = 0; i < simulation_->hca_count(); ++i) {
        const std::string& host = simulation_->hca(i).host();
        if (!all.empty() && all.back().host == host) {
            continue;  // its next HCA
        }
        std::set<pid_t> processes = devices_.users_of(host);
        for (const auto& client : clients_) {
            if (client->host() == host && !client->has_gone()) {
                processes.insert(client->process());
            }
        }
        for (const pid_t process : processes) {
            all.push_back({process, host});
        }
    }
    return all;
}

// "ib_send_bw (process 812 of h0), ..."; "": nobody uses a device.
std::string Server::name_users() const {
    std::string names;
    for (const User& user : users()) {
        names += fmt::format("{}{} (process {} of {})", names.empty() ? "" : ", ",
                             program_of(user.process), user.process, user.host);
    }
    return names;
}

std::string Server::status(bool verbose) const {
    const SimulationOptions& options = simulation_->options();
    std::string text = fmt::format("topology {}, personality {}, seed {}, virtual time {}\n",
                                   simulation_->topology(), options.personality, options.seed,
                                   in_seconds(simulation_->loop().now()));
    const std::vector<User> everyone = users();
    for (std::size_t i = 0; i < simulation_->hca_count(); ++i) {
        const Hca& hca = simulation_->hca(i);
        const fabric::Port& port = hca.port(1);
        const std::string which =
            hca.name() == hca.host() ? "" : fmt::format(", HCA {}", hca.name());
        text += fmt::format("host {}{}: lid {}, port {}", hca.host(), which,
                            port.attributes().lid.value(), to_string(port.state()));
        for (const User& user : everyone) {
            if (user.host == hca.host()) {
                text += fmt::format(", {} (process {})", program_of(user.process), user.process);
            }
        }
        if (const std::size_t count = hca.queue_pair_count(); count > 0) {
            text += fmt::format(", queue pairs {}", count);
        }
        text += '\n';
        if (verbose) {
            text += describe_queue_pairs(hca);
        }
    }
    return text;
}

std::string Server::status_as_json() const {
    const SimulationOptions& options = simulation_->options();
    const std::vector<User> everyone = users();
    Json hosts = Json::array();
    for (std::size_t i = 0; i < simulation_->hca_count(); ++i) {
        const Hca& hca = simulation_->hca(i);
        if (hosts.empty() || hosts.back()["host"] != hca.host()) {
            hosts.push_back({{"host", hca.host()},
                             {"processes", Json::array()},
                             {"programs", Json::array()},
                             {"hcas", Json::array()}});
            for (const User& user : everyone) {
                if (user.host == hca.host()) {
                    hosts.back()["processes"].push_back(user.process);
                    hosts.back()["programs"].push_back(program_of(user.process));
                }
            }
        }
        hosts.back()["hcas"].push_back({{"name", hca.name()},
                                        {"lid", hca.port(1).attributes().lid.value()},
                                        {"state", to_string(hca.port(1).state())},
                                        {"queue_pairs", hca.queue_pair_count()}});
    }
    return text_of({{"topology", simulation_->topology()},
                    {"personality", options.personality},
                    {"seed", options.seed},
                    {"time_ps", to_picoseconds(simulation_->loop().now())},
                    {"hosts", std::move(hosts)}});
}

}  // namespace simverbs
