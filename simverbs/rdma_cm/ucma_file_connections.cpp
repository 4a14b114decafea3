// Commands about connections and the attributes of their queue pairs.
#include <algorithm>
#include <cerrno>

#include "simverbs/rdma_cm/ucma_abi.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"

namespace simverbs::rdma_cm {
namespace {

// Returns the command and what it lacks as zeros: programs of older headers do not know of ECE.
// An error is EINVAL or EFAULT.
template <class T>
std::pair<T, int> read_with_ece(std::span<const std::uint8_t> payload, std::size_t in) {
    constexpr std::size_t kOldBytes = offsetof(T, reserved) + sizeof(T::reserved);
    T command{};
    if (in < kOldBytes) {
        return {command, EINVAL};
    }
    std::memcpy(&command, payload.data(), std::min(in, sizeof command));
    if (in < offsetof(T, ece) + sizeof(T::ece)) {
        command.ece = {};
    }
    return {command, 0};
}

cm::Ece from_user(const rdma_ucm_ece& given) {
    return {.vendor_id = given.vendor_id, .options = given.attr_mod};
}

}  // namespace

UcmaReply UcmaFile::connect(const Command& command) {
    const auto [given, invalid] = read_with_ece<rdma_ucm_connect>(command.payload, command.in);
    if (invalid != 0) {
        return failure(invalid);
    }
    if (given.conn_param.valid == 0) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_bound_id(given.id);
    return failure(id == nullptr ? error
                                 : id->connect(rdma_cm::from_user(given.conn_param, *id),
                                               from_user(given.ece)));
}

// The uid comes with the acceptance of a request; events of the connection follow from then on.
UcmaReply UcmaFile::accept(const Command& command) {
    const auto [given, invalid] = read_with_ece<rdma_ucm_accept>(command.payload, command.in);
    if (invalid != 0) {
        return failure(invalid);
    }
    const auto [id, error] = find_bound_id(given.id);
    if (id == nullptr) {
        return failure(error);
    }
    if (given.conn_param.valid == 0) {
        return failure(id->accept(nullptr, from_user(given.ece)));
    }
    const ConnectionParameters parameters = rdma_cm::from_user(given.conn_param, *id);
    const int refused = id->accept(&parameters, from_user(given.ece));
    if (refused == 0) {
        ucma_.contexts_.at(given.id).uid = given.uid;
    }
    return failure(refused);
}

UcmaReply UcmaFile::reject(const Command& command) {
    const auto given = read_command<rdma_ucm_reject>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto reason = given->reason == 0 ? RejectReason::kConsumerDefined
                                           : static_cast<RejectReason>(given->reason);
    if (reason != RejectReason::kConsumerDefined &&
        reason != RejectReason::kVendorOptionNotSupported) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_bound_id(given->id);
    return failure(id == nullptr ? error
                                 : id->reject({given->private_data,
                                               given->private_data + given->private_data_len},
                                              reason));
}

UcmaReply UcmaFile::disconnect(const Command& command) {
    const auto given = read_command<rdma_ucm_disconnect>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_bound_id(given->id);
    return failure(id == nullptr ? error : id->disconnect());
}

UcmaReply UcmaFile::notify(const Command& command) {
    const auto given = read_command<rdma_ucm_notify>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [id, error] = find_bound_id(given->id);
    return failure(id == nullptr ? error : id->notify(given->event));
}

UcmaReply UcmaFile::init_qp_attr(const Command& command) {
    if (command.out < sizeof(ib_uverbs_qp_attr)) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_init_qp_attr>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    if (given->qp_state > static_cast<std::uint32_t>(QpState::kErr)) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_bound_id(given->id);
    if (id == nullptr) {
        return failure(error);
    }
    ib_uverbs_qp_attr attributes{};
    const int refused = id->init_qp_attr(given->qp_state, attributes);
    return refused != 0 ? failure(refused) : respond(given->response, attributes);
}

}  // namespace simverbs::rdma_cm
