#include "scenarios/engine/cm_usage.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include "simverbs/model/cm_codes.hpp"

#include "scenarios/engine/cm_file.hpp"

namespace scenarios {

namespace {

using fabric::yaml::Errors;

constexpr auto kDecidedByCm =
    std::to_array<std::string_view>({"state", "port", "psn", "receive_psn", "mtu", "min_rnr_timer",
                                     "access", "pkey_index", "qkey", "lid", "gid_index"});
constexpr auto kOfConnect =
    std::to_array<std::string_view>({"to", "port", "resolve_within", "private_data", "answer",
                                     "wait", "within", "event", "status", "errno"});

void check_decided(Checked keys, Errors& errors) {
    for (const std::string_view key : kDecidedByCm) {
        if (keys.has(key)) {
            errors.add(keys.at(key).position(),
                       fmt::format("{}: the communication manager decides it where a connection "
                                   "says \"cm: true\"",
                                   key));
        }
    }
}

// Private data must fit into the message that an operation sends; nothing: it sends none.
std::optional<std::size_t> room_for_private_data(std::string_view operation, bool is_datagram) {
    using simverbs::CmMessage;
    constexpr std::size_t kHeaderOfRdmaCm = 36;
    const auto room_of = [](CmMessage message) {
        return std::size_t{simverbs::properties(message).private_bytes};
    };
    if (operation == "connect") {
        return room_of(is_datagram ? CmMessage::kSidrReq : CmMessage::kReq) - kHeaderOfRdmaCm;
    }
    if (operation == "accept" || operation == "reject") {
        return room_of(is_datagram             ? CmMessage::kSidrRep
                       : operation == "accept" ? CmMessage::kRep
                                               : CmMessage::kRej);
    }
    return std::nullopt;
}

void check_private_data(std::string_view operation, Checked body, bool is_datagram,
                        Errors& errors) {
    const std::optional<std::size_t> room = room_for_private_data(operation, is_datagram);
    const std::size_t bytes = body.text("private_data").size();
    if (room && bytes > *room) {
        errors.add(body.at("private_data").position(),
                   fmt::format("private data of {} bytes: expected {} at most", bytes, *room));
    }
}

}  // namespace

void check_cm_connection(Checked connection, Errors& errors) {
    if (!connection.flag("cm")) {
        return;
    }
    if (connection.text("type") == "XRC") {
        errors.add(connection.at("type").position(),
                   "XRC: a connection by rdma_cm is RC, UC or UD");
    }
    check_decided(connection, errors);
    for (const auto& [host, end] : connection.at("ends").entries()) {
        check_decided(Checked(end), errors);
    }
}

void check_cm_operation(const fabric::yaml::Value& operation, Checked body, Checked connection,
                        Errors& errors) {
    constexpr auto kNeedCm =
        std::to_array<std::string_view>({"accept", "reject", "disconnect", "join", "leave"});
    const std::string& name = operation.text;
    const bool is_by_cm = connection.flag("cm");
    const auto refuse = [&](const std::string& why) {
        errors.add(operation.position, fmt::format("{}: {}", name, why));
    };
    if (std::ranges::find(kNeedCm, name) != kNeedCm.end() && !is_by_cm) {
        refuse("the connection needs \"cm: true\"");
    }
    if (name == "destroy" && body.has("id") && !is_by_cm) {
        refuse("an id is one of a connection with \"cm: true\"");
    }
    if (name == "reconnect" && is_by_cm) {
        refuse("ends of rdma_cm connect anew by \"connect\" and \"accept\"");
    }
    if (name == "connect" && !is_by_cm) {
        for (const std::string_view key : kOfConnect) {
            if (body.has(key)) {
                errors.add(body.at(key).position(),
                           fmt::format("{}: of a connection with \"cm: true\"", key));
            }
        }
    }
    const bool is_datagram = connection.text("type") == "UD";
    if ((name == "join" || name == "leave") && is_by_cm && !is_datagram) {
        refuse("groups are for connections with \"type: UD\"");
    }
    for (const std::string_view key : {"to", "group"}) {
        const std::string address = body.text(key);
        if ((name == "connect" || name == "join") && body.has(key) && !cm_address(address, 1)) {
            errors.add(body.at(key).position(),
                       fmt::format("\"{}\": expected an IP address: {}", address,
                                   key == "to" ? "127.77.0.1" : "239.1.1.1"));
        }
    }
    check_private_data(name, body, is_datagram, errors);
}

}  // namespace scenarios
