// Ids, events and options; the way from a command to its function.
#include "simverbs/rdma_cm/ucma_file.hpp"

#include <array>
#include <cerrno>

#include "fabric/core/assert.hpp"

#include "simverbs/rdma_cm/path_record.hpp"
#include "simverbs/rdma_cm/ucma_abi.hpp"

namespace simverbs::rdma_cm {

UcmaFile::~UcmaFile() {
    while (!contexts_.empty()) {
        ucma_.destroy_context(contexts_.begin()->second);
    }
}

bool UcmaFile::queue(const UcmaEvent& event) {
    if (events_.size() >= kMaxEvents) {
        return false;
    }
    const std::uint64_t number = ++ucma_.last_event_;
    events_.emplace(number, event);
    ucma_.contexts_.at(event.context).events.insert(number);
    observer_.event_available(*this);
    return true;
}

void UcmaFile::drop_events(const std::set<std::uint64_t>& events) {
    for (const std::uint64_t event : events) {
        events_.erase(event);
    }
}

UcmaFile::Handler UcmaFile::handler_of(std::uint32_t command) {
    switch (command) {
        case RDMA_USER_CM_CMD_CREATE_ID:
            return &UcmaFile::create_id;
        case RDMA_USER_CM_CMD_DESTROY_ID:
            return &UcmaFile::destroy_id;
        case RDMA_USER_CM_CMD_BIND_IP:
            return &UcmaFile::bind_ip;
        case RDMA_USER_CM_CMD_RESOLVE_IP:
            return &UcmaFile::resolve_ip;
        case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
            return &UcmaFile::resolve_route;
        case RDMA_USER_CM_CMD_QUERY_ROUTE:
            return &UcmaFile::query_route;
        case RDMA_USER_CM_CMD_CONNECT:
            return &UcmaFile::connect;
        case RDMA_USER_CM_CMD_LISTEN:
            return &UcmaFile::listen;
        case RDMA_USER_CM_CMD_ACCEPT:
            return &UcmaFile::accept;
        case RDMA_USER_CM_CMD_REJECT:
            return &UcmaFile::reject;
        case RDMA_USER_CM_CMD_DISCONNECT:
            return &UcmaFile::disconnect;
        case RDMA_USER_CM_CMD_INIT_QP_ATTR:
            return &UcmaFile::init_qp_attr;
        case RDMA_USER_CM_CMD_GET_EVENT:
            return &UcmaFile::get_event;
        case RDMA_USER_CM_CMD_SET_OPTION:
            return &UcmaFile::set_option;
        case RDMA_USER_CM_CMD_NOTIFY:
            return &UcmaFile::notify;
        case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
            return &UcmaFile::join_ip_multicast;
        case RDMA_USER_CM_CMD_LEAVE_MCAST:
            return &UcmaFile::leave_multicast;
        case RDMA_USER_CM_CMD_MIGRATE_ID:
            return &UcmaFile::migrate_id;
        case RDMA_USER_CM_CMD_QUERY:
            return &UcmaFile::query;
        case RDMA_USER_CM_CMD_BIND:
            return &UcmaFile::bind_address;
        case RDMA_USER_CM_CMD_RESOLVE_ADDR:
            return &UcmaFile::resolve_addr;
        case RDMA_USER_CM_CMD_JOIN_MCAST:
            return &UcmaFile::join_multicast;
        default:
            return nullptr;  // GET_OPTION, which no kernel has
    }
}

UcmaReply UcmaFile::write(std::span<const std::uint8_t> written, const UcmaInputs& inputs) {
    const auto header = read_command<rdma_ucm_cmd_hdr>(written);
    if (!header || header->cmd > RDMA_USER_CM_CMD_JOIN_MCAST ||
        header->in + sizeof *header > written.size()) {
        return failure(EINVAL);
    }
    const Handler handler = handler_of(header->cmd);
    return handler == nullptr ? failure(ENOSYS)
                              : (this->*handler)({.payload = written.subspan(sizeof *header),
                                                  .in = header->in,
                                                  .out = header->out,
                                                  .inputs = inputs});
}

UcmaNeeds UcmaFile::needs(std::span<const std::uint8_t> written) {
    const auto header = read_command<rdma_ucm_cmd_hdr>(written);
    if (!header) {
        return {};
    }
    const std::span<const std::uint8_t> payload = written.subspan(sizeof *header);
    if (header->cmd == RDMA_USER_CM_CMD_SET_OPTION) {
        const auto command = read_command<rdma_ucm_set_option>(payload);
        if (command && command->optlen <= kMaxOptionBytes) {
            return {.option_address = command->optval, .option_bytes = command->optlen};
        }
    }
    if (header->cmd == RDMA_USER_CM_CMD_MIGRATE_ID) {
        if (const auto command = read_command<rdma_ucm_migrate_id>(payload)) {
            return {.descriptor = command->fd};
        }
    }
    return {};
}

std::pair<UcmaContext*, int> UcmaFile::find_context(std::uint32_t number) {
    const auto found = ucma_.contexts_.find(number);
    if (found == ucma_.contexts_.end()) {
        return {nullptr, ENOENT};
    }
    return found->second.file == this ? std::pair(&found->second, 0) : std::pair(nullptr, EINVAL);
}

std::pair<RdmaId*, int> UcmaFile::find_id(std::uint32_t number) {
    const auto [context, error] = find_context(number);
    if (context == nullptr) {
        return {nullptr, error};
    }
    return context->id ? std::pair(ucma_.rdma_cm_.find(*context->id), 0) : std::pair(nullptr, EIO);
}

std::pair<RdmaId*, int> UcmaFile::find_bound_id(std::uint32_t number) {
    const auto [id, error] = find_id(number);
    return id == nullptr || id->local() ? std::pair(id, error) : std::pair(nullptr, EINVAL);
}

UcmaReply UcmaFile::create_id(const Command& command) {
    if (command.out < sizeof(rdma_ucm_create_id_resp)) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_create_id>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    QpType type{};
    switch (given->ps) {
        case RDMA_PS_TCP:
            type = QpType::kRc;
            break;
        case RDMA_PS_UDP:
        case RDMA_PS_IPOIB:
            type = QpType::kUd;
            break;
        case RDMA_PS_IB:
            type = static_cast<QpType>(given->qp_type);
            break;
        default:
            return failure(EINVAL);
    }
    UcmaContext* const context = ucma_.create_context(*this);
    if (context == nullptr) {
        return failure(ENOMEM);
    }
    RdmaId* const id = ucma_.rdma_cm_.create(static_cast<PortSpace>(given->ps), type);
    if (id == nullptr) {
        ucma_.destroy_context(context->number);
        return failure(ENOMEM);
    }
    context->uid = given->uid;
    context->id = id->number();
    ucma_.by_id_.emplace(id->number(), context->number);
    return respond(given->response, rdma_ucm_create_id_resp{.id = context->number});
}

UcmaReply UcmaFile::destroy_id(const Command& command) {
    if (command.out < sizeof(rdma_ucm_destroy_id_resp)) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_destroy_id>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    const auto [context, error] = find_context(given->id);
    if (context == nullptr) {
        return failure(error);
    }
    return respond(given->response, rdma_ucm_destroy_id_resp{
                                        .events_reported = ucma_.destroy_context(context->number)});
}

// Programs of older headers have no room for the ECE options at the end.
UcmaReply UcmaFile::get_event(const Command& command) {
    constexpr std::size_t kOldBytes = offsetof(rdma_ucm_event_resp, reserved);
    if (command.out < kOldBytes) {
        return failure(ENOSPC);
    }
    const auto given = read_command<rdma_ucm_get_event>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    if (events_.empty()) {
        return failure(EAGAIN);
    }
    const auto taken = events_.extract(events_.begin());
    const UcmaEvent& event = taken.mapped();
    UcmaContext& context = ucma_.contexts_.at(event.context);
    context.events.erase(taken.key());
    ++context.events_reported;
    if (event.membership) {
        ++ucma_.memberships_.at(*event.membership).events_reported;
    }
    if (event.new_context) {
        ++context.backlog;
    }
    return respond(given->response, event.response, command.out);
}

UcmaReply UcmaFile::migrate_id(const Command& command) {
    const auto given = read_command<rdma_ucm_migrate_id>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    if (!command.inputs.descriptor_is_open) {
        return failure(ENOENT);
    }
    UcmaFile* const from = command.inputs.file;
    if (from == nullptr || &from->ucma_ != &ucma_) {
        return failure(EINVAL);
    }
    if (const auto [id, error] = from->find_id(given->id); id == nullptr) {
        return failure(error);
    }
    UcmaContext& context = ucma_.contexts_.at(given->id);
    if (from != this && events_.size() + context.events.size() > kMaxEvents) {
        return failure(ENOMEM);
    }
    ucma_.move_context(context, *this);
    if (!context.events.empty()) {
        observer_.event_available(*this);
    }
    return respond(given->response,
                   rdma_ucm_migrate_resp{.events_reported = context.events_reported});
}

UcmaReply UcmaFile::set_option(const Command& command) {
    const auto given = read_command<rdma_ucm_set_option>(command.payload);
    if (!given) {
        return failure(EFAULT);
    }
    if (given->optlen > kMaxOptionBytes) {
        return failure(EINVAL);
    }
    const auto [id, error] = find_id(given->id);
    if (id == nullptr) {
        return failure(error);
    }
    const std::span<const std::uint8_t> value =
        command.inputs.option.value_or(std::span<const std::uint8_t>());
    if (value.size() != given->optlen) {
        return failure(EFAULT);
    }
    if (given->level == RDMA_OPTION_ID) {
        return failure(set_id_option(*id, given->optname, value));
    }
    if (given->level == RDMA_OPTION_IB && given->optname == RDMA_OPTION_IB_PATH) {
        return failure(set_path(*id, value));
    }
    return failure(ENOSYS);
}

int UcmaFile::set_id_option(RdmaId& id, std::uint32_t name, std::span<const std::uint8_t> value) {
    const bool is_byte = value.size() == sizeof(std::uint8_t);
    const auto flag = read_command<int>(value);
    const bool is_flag = flag && value.size() == sizeof(int);
    switch (name) {
        case RDMA_OPTION_ID_TOS:
            if (!is_byte) {
                return EINVAL;
            }
            id.set_service_type(value.front());
            return 0;
        case RDMA_OPTION_ID_REUSEADDR:
            return is_flag ? id.set_reuseaddr(*flag != 0) : EINVAL;
        case RDMA_OPTION_ID_AFONLY:
            return is_flag ? id.set_afonly(*flag != 0) : EINVAL;
        case RDMA_OPTION_ID_ACK_TIMEOUT:
            return is_byte ? id.set_ack_timeout(value.front()) : EINVAL;
        default:
            return ENOSYS;
    }
}

// Takes the first path that serves for messages and data in both directions.
int UcmaFile::set_path(RdmaId& id, std::span<const std::uint8_t> value) {
    constexpr std::uint32_t kWanted = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
    if (value.size() % sizeof(ib_path_rec_data) != 0) {
        return EINVAL;
    }
    for (; !value.empty(); value = value.subspan(sizeof(ib_path_rec_data))) {
        const auto path = read_command<ib_path_rec_data>(value);
        if (path->flags != kWanted) {
            continue;
        }
        const int error = id.set_path(unpack_path_record(bytes_of(path->path_rec)));
        if (error == 0) {
            ucma_.rdma_event(id, {.type = RdmaEventType::kRouteResolved});
        }
        return error;
    }
    return EINVAL;
}

}  // namespace simverbs::rdma_cm
