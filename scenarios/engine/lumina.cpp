#include "scenarios/engine/lumina.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <fmt/core.h>

#include "fabric/yaml/fields.hpp"

#include "scenarios/engine/checked.hpp"

namespace scenarios {

namespace {

namespace yaml = fabric::yaml;

constexpr auto kVerbs = std::to_array<std::string_view>({"write", "read", "send"});
constexpr std::size_t kRead = 1;
constexpr std::size_t kSend = 2;
constexpr auto kTypes = std::to_array<std::string_view>({"drop", "ecn", "bit-error"});
constexpr auto kActions = std::to_array<std::string_view>({"drop", "mark_congestion", "corrupt"});
constexpr auto kMtus = std::to_array<std::string_view>({"256", "512", "1024", "2048", "4096"});
constexpr std::uint64_t kMostConnections = 1024;
constexpr std::uint64_t kMostMessages = 10'000;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28U;
constexpr std::uint64_t kMostPsn = std::uint64_t{1} << 23U;

class Import {
  public:
    Import(const yaml::Value& root, yaml::Errors& errors)
        : traffic_(Checked(root).at("traffic")), errors_(errors) {
        if (traffic_.value() == nullptr) {
            errors_.add(root.position,
                        "\"traffic\" is missing: num-qps, rdma-verb, message-size ...");
            return;
        }
        connections_ = number("num-qps", 1, 1, kMostConnections);
        messages_ = number("num-msgs-per-qp", 1, 1, kMostMessages);
        size_ = number("message-size", 1024, 1, kMostBytes);
        depth_ = number("tx-depth", 1, 1, 64);
        timeout_ = number("min-retransmit-timeout", 14, 0, 31);
        retries_ = number("max-retransmit-retry", 7, 0, 7);
        verb_ = choice(traffic_, "rdma-verb", kVerbs, 0);
        mtu_ = std::stoull(std::string(kMtus[choice(traffic_, "mtu", kMtus, 2)]));
        for (const yaml::Value& event : traffic_.at("data-pkt-events").items()) {
            read_event(event);
        }
    }

    [[nodiscard]] std::string text() const {
        std::string text = "fabric: eth-star:2\nconnections:\n";
        for (std::uint64_t i = 0; i < connections_; ++i) {
            text += fmt::format(
                "  c{}: {{between: [h0, h1], mtu: {}, timeout: {}, retries: {}, rnr_retries: 7}}\n",
                i, mtu_, timeout_, retries_);
        }
        text += fmt::format(
            "hosts:\n  h0: {{memory: {{mem: {{size: {0}, fill: 1}}}}}}\n"
            "  h1: {{memory: {{mem: {{size: {0}, fill: 2}}}}}}\nprograms:\n",
            size_);
        for (std::uint64_t i = 0; i < connections_; ++i) {
            text += programs(i);
        }
        text += faults_.empty() ? "" : "faults:\n" + faults_;
        text += "expect:\n  never: [{status: RETRY_EXC_ERR}, {status: RNR_RETRY_EXC_ERR}]\n";
        return text + (fired_.empty() ? "" : "  fired: {" + fired_ + "}\n");
    }

  private:
    std::uint64_t number(std::string_view key, std::uint64_t otherwise, std::uint64_t least,
                         std::uint64_t most) {
        const yaml::Value* const value = traffic_.find(key);
        return value == nullptr ? otherwise
                                : yaml::number_of(*value, errors_, least, most).value_or(otherwise);
    }
    std::size_t choice(Checked of, std::string_view key, yaml::Words words, std::size_t otherwise) {
        const yaml::Value* const value = of.find(key);
        return value == nullptr ? otherwise
                                : yaml::choice_of(*value, words, errors_).value_or(otherwise);
    }

    [[nodiscard]] std::uint64_t packets_of_message() const { return (size_ + mtu_ - 1) / mtu_; }

    // One message at a time, or `tx-depth` of them.
    [[nodiscard]] std::string programs(std::uint64_t connection) const {
        const std::uint64_t first = std::min(depth_, messages_);
        const auto post = [&](std::uint64_t id, std::uint64_t count) {
            return fmt::format("{{{}: {{qp: c{}, id: {}, length: {}, count: {}}}}}", kVerbs[verb_],
                               connection, id, size_, count);
        };
        const auto poll = [&](std::uint64_t count) {
            return fmt::format("{{poll: {{qp: c{}, count: {}, status: SUCCESS}}}}", connection,
                               count);
        };
        std::string text = fmt::format(
            "  requester{}:\n    host: h0\n    do: [{}, {{loop: {{times: {}, do: [{}, {}]}}}}, "
            "{}]\n",
            connection, post(0, first), messages_ - first, poll(1), post(first, 1), poll(first));
        if (verb_ == kSend) {
            text += fmt::format(
                "  responder{0}:\n    host: h1\n    do: [{{receive: {{qp: c{0}, length: {1}, "
                "count: "
                "{2}}}}}, {{loop: {{times: {3}, do: [{4}, {{receive: {{qp: c{0}, id: {2}, length: "
                "{1}}}}}]}}}}, {5}]\n",
                connection, size_, first, messages_ - first, poll(1), poll(first));
        }
        return text;
    }

    // Lumina counts queue pairs and packets from 0, transmissions from 1, packets anew in each
    // message: an event is of every message.
    void read_event(const yaml::Value& value) {
        constexpr auto kKeys = std::to_array<std::string_view>({"qpn", "psn", "type", "iter"});
        const yaml::Fields only(value, kKeys, errors_);
        const Checked event(value);
        for (const std::string_view key : kKeys) {
            if (!event.has(key)) {
                errors_.add(value.position, fmt::format("\"{}\" is missing", key));
                return;
            }
        }
        const std::uint64_t qp =
            yaml::number_of(*event.find("qpn"), errors_, 0, connections_ - 1).value_or(0);
        const std::uint64_t attempt =
            yaml::number_of(*event.find("iter"), errors_, 1, 0xFFFF).value_or(1);
        const std::size_t type = choice(event, "type", kTypes, 0);
        const std::string way = verb_ == kRead
                                    ? "direction: responses, opcode: RDMA_READ_RESPONSE, "
                                    : "direction: requests, ";
        const std::string when = fmt::format("qp: h0/c{}, {}attempt: {}", qp, way, attempt);
        if (event.text("psn") == "all") {
            add(type, when + ", count: every", "{at_least: 1}");
            return;
        }
        const std::uint64_t psn =
            yaml::number_of(*event.find("psn"), errors_, 0, packets_of_message() - 1).value_or(0);
        for (std::uint64_t i = 0; i < messages_; ++i) {
            const std::uint64_t relative = psn + i * packets_of_message() + 1;
            if (relative <= kMostPsn) {
                add(type, fmt::format("{}, psn: {}", when, relative), "1");
            }
        }
    }

    void add(std::size_t type, const std::string& when, std::string_view fired) {
        const std::string name = fmt::format("event{}", ++events_);
        faults_ +=
            fmt::format("  - {{name: {}, action: {}, when: {{{}}}}}\n", name, kActions[type], when);
        fired_ += fmt::format("{}{}: {}", fired_.empty() ? "" : ", ", name, fired);
    }

    Checked traffic_;
    yaml::Errors& errors_;
    std::uint64_t connections_ = 1;
    std::uint64_t messages_ = 1;
    std::uint64_t size_ = 1;
    std::uint64_t depth_ = 1;
    std::uint64_t timeout_ = 0;
    std::uint64_t retries_ = 0;
    std::uint64_t mtu_ = 1024;
    std::size_t verb_ = 0;
    std::string faults_;
    std::string fired_;
    std::uint64_t events_ = 0;
};

}  // namespace

fabric::Outcome<std::string> import_lumina(std::string_view text, const std::string& file) {
    yaml::Errors found(file);
    const auto root = yaml::parse(text, found);
    std::string scenario;
    if (root) {
        scenario = Import(*root, found).text();
    }
    if (!found.empty()) {
        return fabric::Failure(found.text());
    }
    return scenario;
}

}  // namespace scenarios
