#include "scenarios/engine/usage.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "simverbs/model/fault_actions.hpp"

#include "scenarios/engine/cm_usage.hpp"

namespace scenarios {

namespace {

namespace yaml = fabric::yaml;

class UsageCheck {
  public:
    UsageCheck(const Scenario& scenario, yaml::Errors& errors)
        : scenario_(scenario), errors_(errors) {
        for (const auto& [name, body] : scenario.at("connections").entries()) {
            connections_.emplace(name.text, Checked(body));
        }
        for (const auto& [name, body] : scenario.at("hosts").entries()) {
            hosts_.emplace(name.text, Checked(body));
        }
    }

    void check() {
        for (const auto& [name, body] : scenario_.at("connections").entries()) {
            check_connection(name.text, Checked(body));
        }
        for (const auto& [host, body] : scenario_.at("hosts").entries()) {
            check_operations(host.text, Checked(body).at("do"));
            for (const auto& [name, queue] : Checked(body).at("work_queues").entries()) {
                needs(host.text, "completion_queues", Checked(queue), "cq");
            }
        }
        for (const auto& [name, body] : scenario_.at("programs").entries()) {
            check_operations(Checked(body).text("host"), Checked(body).at("do"));
        }
        check_faults();
    }

  private:
    void check_connection(const std::string& name, Checked body) {
        const auto hosts = body.at("between").items();
        if (hosts.size() != 2 || hosts[0].text == hosts[1].text) {
            errors_.add(body.at("between").position(),
                        "a connection is between two different hosts: \"between: [h0, h1]\"");
            return;
        }
        for (const yaml::Entry& entry : body.at("ends").entries()) {
            if (entry.key.text != hosts[0].text && entry.key.text != hosts[1].text) {
                errors_.add(entry.key.position,
                            fmt::format("{} is no end of this connection", entry.key.text));
            }
        }
        for (const yaml::Value& host : hosts) {
            check_shared_receives(name, body, host.text);
        }
        check_cm_connection(body, errors_);
    }

    // Checks the shared receive queue of one end. Those of XRC belong to a domain of XRC.
    void check_shared_receives(const std::string& name, Checked body, const std::string& host) {
        const bool is_xrc = body.text("type") == "XRC";
        const Checked own = body.at("ends").at(host);
        if (is_xrc && !is_xrc_target(host, name)) {
            if (own.has("srq")) {
                errors_.add(own.at("srq").position(),
                            fmt::format("{} is the initiator of an XRC connection, which receives "
                                        "nothing: the srq is at the other end",
                                        host));
            }
            return;
        }
        const Checked said = own.has("srq") ? own : body;
        if (said.has("srq")) {
            needs(host, "shared_receives", said, "srq");
        } else if (!is_xrc) {
            return;
        }
        const std::string queue = said.text("srq", name);
        if (of_xrc_.try_emplace({host, queue}, is_xrc).first->second != is_xrc) {
            errors_.add(said.has("srq") ? said.at("srq").position() : body.position(),
                        fmt::format("\"{}\" of {} takes messages of XRC: connections of other "
                                    "types need a queue of their own",
                                    queue, host));
        }
    }

    // XRC receives at the second host.
    [[nodiscard]] bool is_xrc_target(const std::string& host, const std::string& connection) const {
        const auto found = connections_.find(connection);
        if (found == connections_.end() || found->second.text("type") != "XRC") {
            return false;
        }
        const auto hosts = found->second.at("between").items();
        return hosts.size() == 2 && hosts[1].text == host;
    }

    // Demands that `body[key]` is something that `host` has in its `section`.
    void needs(const std::string& host, std::string_view section, Checked body,
               std::string_view key) {
        const std::string name = body.text(key);
        const auto found = hosts_.find(host);
        const bool has = found != hosts_.end() && found->second.at(section).has(name);
        if (!has && !(key == "memory" && name == "mem") &&
            !(key == "remote_memory" && name == "mem") &&
            !(key == "cq" && peer_of(host, name).has_value()) &&
            !(key == "srq" && is_xrc_target(host, name))) {
            errors_.add(body.at(key).position(),
                        fmt::format("{} has no \"{}\" among its {}", host, name, section));
        }
    }

    [[nodiscard]] std::optional<std::string> peer_of(const std::string& host,
                                                     const std::string& connection) const {
        const auto found = connections_.find(connection);
        if (found == connections_.end()) {
            return std::nullopt;
        }
        const auto hosts = found->second.at("between").items();
        if (hosts.size() == 2 && (hosts[0].text == host || hosts[1].text == host)) {
            return hosts[hosts[0].text == host ? 1 : 0].text;
        }
        return std::nullopt;
    }

    void check_operations(const std::string& host, Checked list) {
        for (const yaml::Value& operation : list.items()) {
            if (!operation.entries.empty()) {
                check_operation(host, operation.entries.front().key,
                                Checked(operation.entries.front().value));
            }
        }
    }

    void check_operation(const std::string& host, const yaml::Value& name, Checked body) {
        if (name.text == "loop") {
            check_operations(host, body.at("do"));
            return;
        }
        if (name.text == "parallel") {
            for (const yaml::Value& list : body.items()) {
                check_operations(host, Checked(list));
            }
            return;
        }
        if (name.text == "inject") {
            check_programs_of(body);
            return;
        }
        if (name.text == "expect") {
            return;
        }
        constexpr auto kWays = std::to_array<std::string_view>({"qp", "cq", "srq", "wq"});
        const auto given = std::ranges::count_if(kWays, [&](auto way) { return body.has(way); }) +
                           (name.text == "destroy" && body.has("id") ? 1 : 0);
        constexpr auto kNeedOne =
            std::to_array<std::string_view>({"receive", "poll", "arm", "wait_event", "destroy"});
        if (std::ranges::find(kNeedOne, name.text) != kNeedOne.end() && given != 1) {
            errors_.add(name.position,
                        fmt::format("{}: expected one queue; found {}", name.text, given));
        }
        std::optional<std::string> peer;
        const std::string_view key_of_end = body.has("id") && name.text == "destroy" ? "id" : "qp";
        if (body.has(key_of_end)) {
            const std::string connection = body.text(key_of_end);
            peer = peer_of(host, connection);
            if (!peer) {
                errors_.add(body.at(key_of_end).position(),
                            fmt::format("{} has no end of \"{}\"", host, connection));
                return;
            }
            check_cm_operation(name, body, connections_.find(connection)->second, errors_);
        }
        for (const auto& [key, section] :
             std::to_array<std::pair<std::string_view, std::string_view>>(
                 {{"memory", "memory"}, {"cq", "completion_queues"}, {"srq", "shared_receives"}})) {
            if (body.has(key)) {
                needs(host, section, body, key);
            }
        }
        const bool is_own = name.text == "bind" || name.text == "local_invalidate";
        for (const std::string_view key : {"window", "invalidate"}) {
            if (body.has(key)) {
                needs(is_own ? host : *peer, "windows", body, key);
            }
        }
        if (body.has("remote_memory")) {
            needs(*peer, "memory", body, "remote_memory");
        }
    }

    // Checks whose programs a fault stops or ends, and for how long.
    void check_programs_of(Checked fault) {
        const auto* const action = simverbs::find_fault_action(fault.text("action"));
        if (action == nullptr || action->subject != simverbs::FaultSubject::kPrograms) {
            return;
        }
        const std::vector<std::string> hosts = scenario_.hosts();
        if (scenario_.is_fabric_known() &&
            std::ranges::find(hosts, fault.text("node")) == hosts.end()) {
            errors_.add(fault.has("node") ? fault.at("node").position() : fault.position(),
                        fmt::format("{}: expected the host of the programs: \"node: {}\"",
                                    action->name, hosts.empty() ? "h0" : hosts.front()));
        }
        if (action->needs.contains(simverbs::FaultMember::kDuration) &&
            fault.duration("duration") <= 0) {
            errors_.add(fault.position(),
                        fmt::format("{}: expected how long: \"duration: 10ms\"", action->name));
        }
    }

    // A fault comes after one that stands before it.
    void check_faults() {
        std::set<std::string> known;
        int unnamed = 0;
        for (const yaml::Value& value : scenario_.at("faults").items()) {
            const Checked fault(value);
            check_programs_of(fault);
            for (const Checked& other : {fault.at("when").at("after"), fault.at("fault")}) {
                if (other.value() != nullptr && !known.contains(other.own_text())) {
                    errors_.add(other.position(),
                                fmt::format("fault \"{}\" stands further down: it must come first",
                                            other.own_text()));
                }
            }
            const std::string name =
                fault.has("name") ? fault.text("name") : fmt::format("fault{}", ++unnamed);
            if (!known.insert(name).second) {
                errors_.add(value.position, fmt::format("a second fault \"{}\"", name));
            }
        }
    }

    const Scenario& scenario_;
    yaml::Errors& errors_;
    // By name: workloads make thousands.
    std::map<std::string_view, Checked> connections_;
    std::map<std::string_view, Checked> hosts_;
    // Tells of each host and its shared receive queues whether they are those of XRC.
    std::map<std::pair<std::string, std::string>, bool> of_xrc_;
};

}  // namespace

void refuse_order(const Scenario& scenario, yaml::Errors& errors) {
    if (const Checked order = scenario.at("run").at("order"); order.value() != nullptr) {
        errors.add(order.position(),
                   "order: threads of a program take turns if the scenario is around that program "
                   "(SIMVERBS_SCENARIO, simverbs exec); neither processes of a served world nor "
                   "programs of operations do");
    }
}

void check_usage(const Scenario& scenario, yaml::Errors& errors) {
    UsageCheck(scenario, errors).check();
    if (scenario.has_processes()) {
        check_for_processes(scenario, errors);
    } else if (scenario.has_own_programs() && scenario.at("run").text("schedule") == "free") {
        errors.add(
            scenario.at("run").at("schedule").position(),
            "schedule: free is for processes (\"run\" of hosts); programs of operations have "
            "nobody to wait for");
    }
    if (scenario.has_own_programs() || scenario.has_processes()) {
        refuse_order(scenario, errors);
    }
}

void check_for_processes(const Scenario& scenario, yaml::Errors& errors) {
    for (const auto& [host, body] : scenario.at("hosts").entries()) {
        for (const yaml::Entry& entry : body.entries) {
            if (entry.key.text != "run") {
                errors.add(entry.key.position,
                           fmt::format("{}: a host of processes has nothing but \"run\"; what they "
                                       "use they make themselves",
                                       entry.key.text));
            }
        }
    }
    for (const char* const section : {"programs", "connections", "workloads"}) {
        const Checked found = scenario.at(section);
        if (!found.entries().empty()) {
            errors.add(found.position(),
                       fmt::format("{}: a scenario has processes, or programs of operations; "
                                   "not both",
                                   section));
        }
    }
    for (const char* const key : {"memory", "invariants", "stopped"}) {
        const Checked found = scenario.at("expect").at(key);
        if (found.value() != nullptr) {
            errors.add(
                found.position(),
                fmt::format("{}: nobody can look into processes; expect completions, events, "
                            "counters, exit ...",
                            key));
        }
    }
    if (const Checked stop = scenario.at("run").at("stop"); stop.value() != nullptr) {
        errors.add(stop.position(),
                   "stop: processes end by themselves; time_limit is of wall time");
    }
}

}  // namespace scenarios
