#include "simverbs/cli/fabric_commands.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "fabric/yaml/quantities.hpp"

#include "simverbs/cli/dead_worlds.hpp"
#include "simverbs/cli/exit_status.hpp"
#include "simverbs/cli/fabric_question.hpp"
#include "simverbs/cli/world_options.hpp"

namespace simverbs::cli {
namespace {

// How many values a change takes.
struct Change {
    std::string_view name;
    FabricAction action;
    std::size_t least;
    std::size_t most;
};
constexpr std::size_t kAny = 64;
constexpr auto kLinkChanges = std::to_array<Change>({
    {"", FabricAction::kShow, 0, 0},
    {"up", FabricAction::kLinkUp, 0, 0},
    {"down", FabricAction::kLinkDown, 0, 0},
    {"rate", FabricAction::kLinkRate, 1, 2},  // "4xEDR", "4x EDR"
});
constexpr auto kPortChanges = std::to_array<Change>({
    {"", FabricAction::kShow, 0, 0},
    {"enable", FabricAction::kPortEnable, 0, 0},
    {"disable", FabricAction::kPortDisable, 0, 0},
    {"lid", FabricAction::kPortLid, 1, 1},
    {"pkey", FabricAction::kPortPkeys, 1, kAny},
    {"gid", FabricAction::kPortGid, 1, 1},
    {"ip", FabricAction::kPortAddress, 1, 3},
});
constexpr auto kSmChanges = std::to_array<Change>({
    {"", FabricAction::kSmStatus, 0, 0},
    {"status", FabricAction::kSmStatus, 0, 0},
    {"sweep", FabricAction::kSmSweep, 0, 0},
    {"reregister", FabricAction::kSmReregister, 1, 1},
});

template <std::size_t N>
std::vector<std::string> names_of(const std::array<Change, N>& changes) {
    std::vector<std::string> names;
    for (const Change& each : changes) {
        if (!each.name.empty()) {
            names.emplace_back(each.name);
        }
    }
    return names;
}

template <std::size_t N>
fabric::Outcome<FabricAction> action_of(const std::array<Change, N>& changes,
                                        const std::string& name, std::size_t values) {
    const Change& change = *std::ranges::find(changes, name, &Change::name);
    if (values < change.least || values > change.most) {
        return fabric::Failure(fmt::format("'{}' takes {}", name,
                                           change.most == 0   ? "no value"
                                           : change.most <= 2 ? "one value"
                                                              : "values"));
    }
    return change.action;
}

template <std::size_t N>
bool put(const std::string& text, std::array<char, N>& field) {
    if (text.size() >= N) {
        return false;
    }
    std::copy(text.begin(), text.end(), field.begin());
    return true;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) {
        text += text.empty() ? word : ' ' + word;
    }
    return text;
}

}  // namespace

FabricCommands::FabricCommands(CLI::App& app, std::string& world)
    : world_(world),
      command_(app.add_subcommand("fabric", "Look at a served fabric, and change it")) {
    command_->require_subcommand(1);
    add_show();
    add_link();
    add_port();
    add_sm();
    add_counters();
}

CLI::App* FabricCommands::add(const char* name, const char* help) {
    CLI::App* added = command_->add_subcommand(name, help);
    add_world(*added, world_);
    return added;
}

void FabricCommands::add_show() {
    show_ = add("show", "Nodes, ports and links");
    show_->add_option("name", name_, "of a node, a host, a port (h0:1) or a link (h0-s0)")
        ->type_name("NAME")
        ->default_str("all of them");
    show_->add_flag("--json", as_json_, "for programs");
}

void FabricCommands::add_link() {
    link_ = add("link", "A link: take it down or up, or change its rate");
    link_->add_option("name", name_, "its ends in either order: h0-s0, s0-s1#2")
        ->type_name("LINK")
        ->required();
    link_
        ->add_option("change", change_,
                     fmt::format("as in: up, down, rate 4xEDR, rate 100Gb/s ({}); nothing: show it",
                                 fabric::yaml::link_rate_names()))
        ->check(CLI::IsMember(names_of(kLinkChanges)));
    link_->add_option("values", values_, "of the change")->type_name("VALUE");
    link_
        ->add_option("--for", duration_,
                     "with down: up again after this much virtual time: 500us, 20ms")
        ->type_name("DURATION");
}

void FabricCommands::add_port() {
    port_ = add("port", "A port: its link, addresses and partitions");
    port_->add_option("name", name_, "such as h0:1")->type_name("PORT")->required();
    port_
        ->add_option("change", change_,
                     "as in: enable, disable, lid 9, pkey 1=0x8001 2=0x7fff, gid 1=fe80::1; on "
                     "Ethernet ip 10.0.0.1, ip 10.1.0.1 vlan 100; nothing: show it")
        ->check(CLI::IsMember(names_of(kPortChanges)));
    port_->add_option("values", values_, "of the change")->type_name("VALUE");
}

void FabricCommands::add_sm() {
    sm_ = add("sm", "The subnet manager");
    sm_->add_option("what", change_,
                    "status: ports and routes; sweep: look at the subnet again; reregister "
                    "PORT: ask it to subscribe again")
        ->check(CLI::IsMember(names_of(kSmChanges)))
        ->default_str("status");
    sm_->add_option("port", values_, "of reregister")->type_name("PORT");
    sm_->add_flag("--json", as_json_, "of status, for programs");
}

void FabricCommands::add_counters() {
    counters_ = add("counters", "What ports have counted; of one port, those that are 0, too");
    counters_->add_option("name", name_, "of a node, a host or a port (h0:1)")
        ->type_name("NAME")
        ->default_str("all of them");
    counters_->add_flag("--reset", resets_, "0 from now on, as performance management has it");
    counters_->add_flag("--hw", of_hardware_, "hw_counters of devices, too");
    counters_->add_flag("--zeros", with_zeros_, "those that are 0, too, as --json has them");
    counters_->add_flag("--json", as_json_, "for programs");
}

fabric::Outcome<FabricRequest> FabricCommands::request() const {
    FabricRequest request;
    fabric::Outcome<FabricAction> action = FabricAction::kCounters;
    std::string name = name_;
    std::string value = joined(values_);
    if (show_->parsed()) {
        action = FabricAction::kShow;
    } else if (link_->parsed()) {
        action = action_of(kLinkChanges, change_, values_.size());
        if (!duration_.empty()) {
            if (change_ != "down") {
                return fabric::Failure("--for goes with down");
            }
            value = duration_;
        }
    } else if (port_->parsed()) {
        action = action_of(kPortChanges, change_, values_.size());
    } else if (sm_->parsed()) {
        action = action_of(kSmChanges, change_, values_.size());
        name = value;
        value.clear();
        if (as_json_ && action && *action != FabricAction::kSmStatus) {
            return fabric::Failure("--json goes with status");
        }
    }
    request.as_json = as_json_ ? 1 : 0;
    request.resets = resets_ ? 1 : 0;
    request.of_hardware = of_hardware_ ? 1 : 0;
    request.with_zeros = with_zeros_ ? 1 : 0;
    if (!put(name, request.name) || !put(value, request.value)) {
        return fabric::Failure("that is too long");
    }
    if (!action) {
        return fabric::Failure(action.error());
    }
    request.action = *action;
    return request;
}

int FabricCommands::run() {
    const std::string socket = socket_path(world_);
    if (clear_dead_world(socket)) {
        return kUsage;
    }
    const fabric::Outcome<FabricRequest> request = this->request();
    if (!request) {
        return complain(request.error(), kUsage);
    }
    FabricQuestion question(socket, *request);
    if (!question.is_asked() || !question.take_answer()) {
        return complain(question.reason(), kUsage);
    }
    if (question.error() != 0) {
        const bool is_usage = question.error() == ENOENT || question.error() == EINVAL;
        return complain(question.text(), is_usage ? kUsage : kFailed);
    }
    fmt::print("{}", question.text());
    return kPassed;
}

}  // namespace simverbs::cli
