// Records of a run, for whoever judges or explains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/yaml/value.hpp"

namespace scenarios {

// A trace record, from the callback or from a file. The names are those of the program's own
// records, or are kept for ever (read_trace()): a run has many records, of few names.
struct Record {
    struct Field {
        std::string_view name;
        std::string text;  // of numbers: decimal
        std::uint64_t number = 0;
    };

    std::int64_t time_ps = 0;
    std::string node;
    std::string_view category;
    std::string_view name;
    std::vector<Field> fields;

    // 0 and "" where there is no such field.
    [[nodiscard]] std::uint64_t number(std::string_view field) const;
    [[nodiscard]] std::string_view text(std::string_view field) const;
};

// Most records of a run are of these; only explanations read them.
inline bool is_of_frame_on_its_way(std::string_view name) {
    return name == "frame_sent" || name == "frame_received";
}

// A completion that a program, or the end of the run, has taken.
struct Completed {
    std::int64_t time_ps;  // when it became visible
    std::string end;       // "h0/c"; of nobody known: the host alone
    std::uint64_t id;
    int status;
    int opcode;
    std::uint32_t bytes;
    std::uint32_t imm;
    std::uint32_t vendor_err;
    bool is_receive = false;
};

struct AsyncEventSeen {
    std::int64_t time_ps;
    std::string host;
    int event;
    std::string of;  // name of the object, number of the port
};

// An event of rdma_cm that a program has had, as librdmacm gives it; of processes as the kernel
// does.
struct CmEventSeen {
    std::int64_t time_ps;
    std::string host;
    int event;                   // of simverbs::RdmaEventType
    int status;                  // 0, -errno, the reason of a REJ or the status of a SIDR_REP
    std::string of;              // the connection; "": not known, or a listener's
    std::string private_data{};  // without the zeros at its end
};

// An expectation that does not hold, or an operation that went wrong.
struct Failure {
    fabric::yaml::Position position;  // in the scenario
    std::int64_t time_ps;
    std::string expected;
    std::string happened;
    // The kind of failure, without names and numbers: "completions", "invariant in_order",
    // "operation status RETRY_EXC_ERR". Two runs fail in the same way where it is the same.
    std::string kind{};
    std::string end{};  // that it is about, "h0/c"; "": about none
};

// "h0/2": host and place; nothing where `end` is no such name.
struct NumberedEnd {
    std::string_view host;
    std::uint32_t nth;
};
std::optional<NumberedEnd> numbered_end(std::string_view end);

// A packet that a fault has hit; no `end`: it belongs to no queue pair that the run knows.
struct PacketHit {
    std::string end{};  // whose requests it is of: "h0/c"
    bool is_response = false;
    std::uint64_t psn = 0;  // relative, from 1
    std::uint64_t attempt = 0;
    std::string opcode{};  // "SEND_ONLY"
    std::string host{};    // that sent it

    bool operator==(const PacketHit&) const = default;
};

// "h0 QP 0x10001", as pictures have it.
std::string queue_pair_text(std::string_view node, std::uint64_t qpn);

// "1.5us".
std::string time_text(std::int64_t time_ps);

}  // namespace scenarios
