#include "scenarios/engine/fired_faults.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "fabric/core/counted.hpp"

#include "scenarios/engine/fault_text.hpp"
#include "scenarios/engine/roots.hpp"
#include "scenarios/engine/trail.hpp"

namespace scenarios {

namespace {

// Lines behind the first fault of a connection at most.
constexpr std::size_t kMostSteps = 16;

bool is_response(std::string_view operation) {
    return operation == "ACKNOWLEDGE" || operation == "ATOMIC_ACKNOWLEDGE" ||
           operation.starts_with("RDMA_READ_RESPONSE");
}

// "the answer to an RDMA READ", as the opcode of the packet has it.
std::string_view carried_by(std::string_view operation) {
    struct Row {
        std::string_view prefix;
        std::string_view text;
    };
    static constexpr Row kRows[] = {
        {"RDMA_READ_RESPONSE", "data that an RDMA READ had read"},
        {"RDMA_READ_REQUEST", "an RDMA READ"},
        {"RDMA_WRITE", "data of an RDMA WRITE"},
        {"SEND", "data of a SEND"},
        {"ATOMIC_ACKNOWLEDGE", "the result of an atomic operation that had been executed"},
        {"COMPARE_SWAP", "an atomic operation"},
        {"FETCH_ADD", "an atomic operation"},
        {"ACKNOWLEDGE", "an acknowledgment"},
    };
    for (const Row& row : kRows) {
        if (operation.starts_with(row.prefix)) {
            return row.text;
        }
    }
    return "";
}

class FiredFaults {
  public:
    FiredFaults(std::span<const Record> records, const RunNames* names)
        : records_(records), names_(names), places_(records) {}

    std::string text() {
        for (const Record& record : records_) {
            if (record.name == "queue_pair_connected") {
                connect(record);
            } else if (record.name == "fault_fired" && record.text("action") != "mark") {
                fire(record);
            } else if (record.name == "packet_sent") {
                send(record);
            } else if (record.name == "delivered") {
                deliver(record);
            } else if (record.name == "completion") {
                complete(record);
            }
        }
        say_sent_again();
        if (left_out_ > 0) {
            text_ += fmt::format("    Then {} of that kind.\n",
                                 fabric::counted(left_out_, "further line"));
        }
        return text_.empty() ? ""
                             : "    What the injected faults hit, and what followed:\n" + text_;
    }

  private:
    // A requester and its responder. Several queue pairs of one number lie on different nodes.
    struct Connection {
        std::string node;
        std::uint64_t qpn = 0;
        std::uint64_t peer_qpn = 0;
        std::uint64_t first_psn = 0;
        bool was_hit = false;
        std::set<std::uint64_t> read{};          // PSNs of READs that were answered
        std::vector<std::string> carried_out{};  // messages of the requester, since it was hit
    };

    // Packets of one connection that were sent again one behind the other.
    struct SentAgain {
        const Record* first = nullptr;  // nullptr: none
        const Connection* of = nullptr;
        std::int64_t first_psn = 0;
        std::int64_t last_psn = 0;
    };

    template <class... Args>
    void say(const Record& record, fmt::format_string<Args...> format, Args&&... args) {
        say_sent_again();
        say_line(record, fmt::format(format, std::forward<Args>(args)...));
    }

    void say_line(const Record& record, std::string_view line) {
        if (steps_ == kMostSteps) {
            ++left_out_;
            return;
        }
        ++steps_;
        text_ += fmt::format("    {}: {}\n", time_text(record.time_ps), line);
    }

    void say_sent_again() {
        const SentAgain sent = std::exchange(again_, {});
        if (sent.first == nullptr) {
            return;
        }
        const std::string who = end(*sent.of);
        say_line(*sent.first, sent.first_psn == sent.last_psn
                                  ? fmt::format("{} sent {}, PSN {}, again.", who,
                                                sent.first->text("opcode"), sent.first_psn)
                                  : fmt::format("{} sent PSN {} to {} again.", who, sent.first_psn,
                                                sent.last_psn));
    }

    void connect(const Record& record) {
        Connection& made = connections_[{record.node, record.number("qpn")}];
        made = {.node = record.node,
                .qpn = record.number("qpn"),
                .peer_qpn = record.number("dest_qpn"),
                .first_psn = record.number("sq_psn")};
    }

    // The connection whose responder is this queue pair of the node; nullptr: none is known.
    Connection* answered_by(const Record& record, std::uint64_t requester_qpn) {
        const std::uint64_t qpn = record.number("qpn");
        for (auto& [place, connection] : connections_) {
            const bool is_requester = requester_qpn == 0 || connection.qpn == requester_qpn;
            if (connection.peer_qpn == qpn && is_requester && place.first != record.node) {
                return &connection;
            }
        }
        return nullptr;
    }

    void fire(const Record& fired) {
        const std::string_view operation = fired.text("operation");
        steps_ = 0;
        std::string place = place_text(fired, places_);
        place.pop_back();  // a comma
        say(fired, "the injected fault {} fired {}{}.", fault_name(records_, fired), place,
            carried_by(operation).empty()
                ? std::string()
                : fmt::format(", which carried {}", carried_by(operation)));
        const std::uint64_t qpn = fired.number(is_response(operation) ? "to_flow" : "flow");
        for (auto& [key, connection] : connections_) {
            const bool is_hit = operation.empty() || connection.qpn == qpn;
            connection.was_hit = connection.was_hit || is_hit;
        }
    }

    void send(const Record& sent) {
        const std::string_view opcode = sent.text("opcode");
        if (is_response(opcode)) {
            answer(sent, opcode);
            return;
        }
        const auto found = connections_.find({sent.node, sent.number("qpn")});
        if (found != connections_.end() && found->second.was_hit &&
            sent.number("retransmission") != 0) {
            send_again(sent, found->second);
        }
    }

    void send_again(const Record& sent, const Connection& connection) {
        const std::int64_t psn = relative_psn(connection, sent);
        if (again_.of != &connection || psn != again_.last_psn + 1 ||
            carried_by(again_.first->text("opcode")) != carried_by(sent.text("opcode"))) {
            say_sent_again();
            again_ = {&sent, &connection, psn, psn};
        }
        again_.last_psn = psn;
    }

    // A READ that is sent again is executed again; nothing else is.
    void answer(const Record& sent, std::string_view opcode) {
        Connection* const connection = answered_by(sent, sent.number("dest_qpn"));
        if (connection == nullptr || !opcode.starts_with("RDMA_READ_RESPONSE") ||
            connection->read.insert(sent.number("psn")).second || !connection->was_hit) {
            return;
        }
        say(sent, "{} read its memory once more for PSN {}{}.", sent.node,
            relative_psn(*connection, sent),
            connection->carried_out.empty()
                ? std::string()
                : fmt::format(", after it had carried out {} of the same queue pair",
                              fmt::join(connection->carried_out, ", ")));
    }

    void deliver(const Record& delivered) {
        Connection* const connection = answered_by(delivered, 0);
        if (connection == nullptr || !connection->was_hit) {
            return;
        }
        connection->carried_out.push_back(
            fmt::format("{} of {}", delivered.text("kind"),
                        fabric::counted(delivered.number("bytes"), "byte")));
        say(delivered, "{} carried out {} of {}.", delivered.node, connection->carried_out.back(),
            end(*connection));
    }

    void complete(const Record& completion) {
        const auto found = connections_.find({completion.node, completion.number("qpn")});
        if (found != connections_.end() && found->second.was_hit) {
            say(completion, "request {} of {} completed with {}.", completion.number("index"),
                end(found->second), completion.text("status"));
        }
    }

    [[nodiscard]] std::string end(const Connection& connection) const {
        return end_text(names_, connection.node, connection.qpn);
    }

    // As faults count them, from 1.
    static std::int64_t relative_psn(const Connection& connection, const Record& packet) {
        return psn_steps(connection.first_psn, packet.number("psn")) + 1;
    }

    std::span<const Record> records_;
    const RunNames* names_;
    FaultPlaces places_;
    std::map<std::pair<std::string, std::uint64_t>, Connection> connections_;
    std::string text_;
    SentAgain again_;
    std::size_t steps_ = 0;
    std::size_t left_out_ = 0;
};

}  // namespace

std::string describe_fired_faults(std::span<const Record> records, const RunNames* names) {
    return FiredFaults(records, names).text();
}

}  // namespace scenarios
