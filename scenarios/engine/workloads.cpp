#include "scenarios/engine/workloads.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "scenarios/engine/compose.hpp"

namespace scenarios {

namespace {

namespace yaml = fabric::yaml;

// Ids of sends begin at 0, those of receives here.
constexpr std::uint64_t kReceiveIds = 1'000'000;

void place_at(yaml::Value& value, yaml::Position position) {
    value.position = position;
    for (yaml::Value& item : value.items) {
        place_at(item, position);
    }
    for (yaml::Entry& entry : value.entries) {
        entry.key.position = position;
        place_at(entry.value, position);
    }
}

// Writes what one workload adds to its scenario, all of it written where the workload stands.
class Writer {
  public:
    Writer(const yaml::Value& name, Checked body)
        : name_(name.text), body_(body), position_(name.position) {
        messages_ = body.number("messages", 10);
        size_ = body.size("size", 64);
    }

    void ping_pong() {
        const auto hosts = body_.at("between").items();
        connect(name_, hosts[0].text, hosts[1].text);
        program(name_ + ".ping", hosts[0].text,
                fmt::format("[{{loop: {{times: {}, do: [{}, {}, {}]}}}}]", messages_, receive(0, 1),
                            send("send", 0, 1), poll(2)));
        program(name_ + ".pong", hosts[1].text,
                fmt::format("[{}, {{loop: {{times: {}, do: [{}, {}, {}, {}]}}}}]", receive(0, 1),
                            messages_, poll(1), receive(1, 1), send("send", 0, 1), poll(1)));
    }

    void stream(const std::string& connection, const std::string& from, const std::string& to,
                std::uint64_t window) {
        const std::uint64_t first = std::min(window, messages_);
        connect(connection, from, to);
        program(
            connection + ".source", from,
            fmt::format("[{}, {{loop: {{times: {}, do: [{}, {}]}}}}, {}]",
                        send("send", 0, first, connection), messages_ - first, poll(1, connection),
                        send("send", first, 1, connection), poll(first, connection)));
        program(connection + ".sink", to,
                fmt::format("[{}, {{loop: {{times: {}, do: [{}, {}]}}}}]",
                            receive(0, first, connection), messages_, poll(1, connection),
                            receive(first, 1, connection)));
    }

    void stream() {
        stream(name_, body_.text("from"), body_.text("to"), body_.number("window", 8));
    }

    void incast(const std::vector<std::string>& all) {
        constexpr std::uint64_t kWindow = 4;
        const std::string to = body_.text("to");
        for (const std::string& from : chosen("from", all)) {
            if (from != to) {
                stream(name_ + "." + from, from, to, kWindow);
            }
        }
    }

    // Each direction of a pair has one message under way. Queues of the default size would take
    // 200 KB of each of so many queue pairs.
    void all_to_all(const std::vector<std::string>& all) {
        constexpr std::string_view kSizes = ", sends: 2, receives: 2, completions: 4";
        const std::vector<std::string> hosts = chosen("hosts", all);
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            memory(hosts[i], hosts.size() * 2 * size_, i + 1);
            for (std::size_t j = i + 1; j < hosts.size(); ++j) {
                const std::string connection = fmt::format("{}.{}.{}", name_, hosts[i], hosts[j]);
                connect(connection, hosts[i], hosts[j], kSizes);
                exchange(connection, hosts[i], i, hosts.size());
                exchange(connection, hosts[j], j, hosts.size());
            }
        }
    }

    void key_value(const std::vector<std::string>& all) {
        const std::string server = body_.text("server");
        std::uint64_t slot = 0;
        std::uint64_t clients = 0;
        for (const std::string& client : chosen("clients", all)) {
            clients += client != server ? 1 : 0;
        }
        memory(server, clients * messages_ * size_, 0);
        for (const std::string& client : chosen("clients", all)) {
            if (client == server) {
                continue;
            }
            const std::string connection = name_ + "." + client;
            memory(client, 2 * messages_ * size_, slot + 1);
            connect(connection, client, server);
            const std::string part = fmt::format(
                "qp: {}, memory: {}, remote_memory: {}, length: {}, step: {}, to: {}",
                word(connection), word(name_), word(name_), size_, size_, slot * messages_ * size_);
            // put, tell the server, hear that it knows, get.
            program(connection + ".client", client,
                    fmt::format("[{{loop: {{times: {}, do: [{}, {{write: {{{}}}}}, {}, {}, "
                                "{{read: {{{}, at: {}, id: {}}}}}, {}]}}}}]",
                                messages_, receive(0, 1, connection), part,
                                send("send", kReceiveIds * 2, 1, connection), poll(3, connection),
                                part, messages_ * size_, kReceiveIds * 3, poll(1, connection)));
            program(connection + ".server", server,
                    fmt::format("[{}, {{loop: {{times: {}, do: [{}, {}, {}, {}]}}}}]",
                                receive(0, 1, connection), messages_, poll(1, connection),
                                receive(1, 1, connection), send("send", 0, 1, connection),
                                poll(1, connection)));
            ++slot;
        }
    }

    void merge_into(yaml::Value& root) {
        for (const auto& [section, made] :
             {std::pair("hosts", &hosts_), std::pair("connections", &connections_),
              std::pair("programs", &programs_)}) {
            if (!made->entries.empty()) {
                yaml::Value document = mapping();
                document.entries.push_back({key(section), mapping()});
                merge(root, document);  // a host may be named twice
                document.entries[0].value = std::move(*made);
                merge(root, std::move(document));
            }
        }
    }

  private:
    [[nodiscard]] std::vector<std::string> chosen(std::string_view key,
                                                  const std::vector<std::string>& all) const {
        std::vector<std::string> names;
        for (const yaml::Value& item : body_.at(key).items()) {
            names.push_back(item.text);
        }
        return names.empty() ? all : names;
    }

    void connect(const std::string& connection, const std::string& one, const std::string& other,
                 std::string_view sizes = {}) {
        std::string options(sizes);
        for (const char* const key : {"type", "retries", "rnr_retries", "timeout", "mtu"}) {
            if (body_.has(key)) {
                options += fmt::format(", {}: {}", key, word(body_.text(key)));
            }
        }
        add(connections_, connection,
            fmt::format("{{between: [{}, {}]{}}}", word(one), word(other), options));
    }

    void program(const std::string& name, const std::string& host, const std::string& operations) {
        add(programs_, name, fmt::format("{{host: {}, do: {}}}", word(host), operations));
    }

    void memory(const std::string& host, std::uint64_t bytes, std::uint64_t fill) {
        add(hosts_, host,
            fmt::format("{{memory: {{{}: {{size: {}, fill: {}}}}}}}", word(name_),
                        std::max<std::uint64_t>(bytes, 1), fill));
    }

    // As it stands in what is read.
    static std::string word(std::string_view text) { return yaml::quoted_if_needed(text); }

    [[nodiscard]] yaml::Value key(std::string_view name) const {
        yaml::Value key = key_named(name);
        key.position = position_;
        return key;
    }
    [[nodiscard]] yaml::Value mapping() const {
        yaml::Value empty;
        empty.kind = yaml::Kind::kMapping;
        empty.position = position_;
        return empty;
    }

    // An entry at a time: documents of thousands take a gigabyte to read.
    void add(yaml::Value& section, std::string_view name, const std::string& text) const {
        yaml::Errors errors(name_);
        if (auto value = yaml::parse(text, errors)) {
            place_at(*value, position_);
            section.entries.push_back({key(name), std::move(*value)});
        }
    }

    // One direction of an exchange: WRITEs into a place of one's own at the peer.
    void exchange(const std::string& connection, const std::string& host, std::size_t own,
                  std::size_t hosts) {
        program(connection + "." + host, host,
                fmt::format("[{{loop: {{times: {}, do: [{}, {{write: {{qp: {}, memory: {}, "
                            "remote_memory: {}, length: {}, at: {}, to: {}, imm: {}}}}}, {}]}}}}]",
                            messages_, receive(0, 1, connection), word(connection), word(name_),
                            word(name_), size_, (hosts + own) * size_, own * size_, own,
                            poll(2, connection)));
    }

    [[nodiscard]] std::string send(std::string_view verb, std::uint64_t id, std::uint64_t count,
                                   const std::string& connection = {}) const {
        return fmt::format("{{{}: {{qp: {}, id: {}, count: {}, length: {}}}}}", verb,
                           word(connection.empty() ? name_ : connection), id, count, size_);
    }
    [[nodiscard]] std::string receive(std::uint64_t id, std::uint64_t count,
                                      const std::string& connection = {}) const {
        return fmt::format("{{receive: {{qp: {}, id: {}, count: {}, length: {}, at: {}}}}}",
                           word(connection.empty() ? name_ : connection), kReceiveIds + id, count,
                           size_, kInbox);
    }
    [[nodiscard]] std::string poll(std::uint64_t count, const std::string& connection = {}) const {
        return fmt::format("{{poll: {{qp: {}, count: {}, status: SUCCESS}}}}",
                           word(connection.empty() ? name_ : connection), count);
    }

    static constexpr std::uint64_t kInbox = std::uint64_t{1} << 19;  // behind what is sent

    std::string name_;
    Checked body_;
    std::uint64_t messages_ = 0;
    std::uint64_t size_ = 0;
    yaml::Position position_;
    yaml::Value hosts_ = mapping();
    yaml::Value connections_ = mapping();
    yaml::Value programs_ = mapping();
};

}  // namespace

void expand_workloads(Scenario& scenario) {
    const std::vector<std::string> hosts = scenario.hosts();
    const yaml::Value workloads = scenario.at("workloads").value() == nullptr
                                      ? yaml::Value{}
                                      : *scenario.at("workloads").value();
    for (const auto& [name, value] : workloads.entries) {
        const yaml::Entry& kind = value.entries.front();
        Writer writer(name, Checked(kind.value));
        if (kind.key.text == "ping_pong") {
            writer.ping_pong();
        } else if (kind.key.text == "stream") {
            writer.stream();
        } else if (kind.key.text == "incast") {
            writer.incast(hosts);
        } else if (kind.key.text == "all_to_all") {
            writer.all_to_all(hosts);
        } else {
            writer.key_value(hosts);
        }
        writer.merge_into(scenario.root);
    }
    std::erase_if(scenario.root.entries,
                  [](const yaml::Entry& entry) { return entry.key.text == "workloads"; });
}

}  // namespace scenarios
