#include "simverbs/server/rdma_netlink.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include "simverbs/server/rdma_netlink_objects.hpp"
#include "simverbs/world/device_tree.hpp"

namespace simverbs {
namespace {

using Attributes = std::array<const nlattr*, RDMA_NLDEV_ATTR_MAX>;
using Answers = std::vector<NetlinkBytes>;

constexpr std::uint16_t type_of(std::uint32_t command) {
    return static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
}

struct Request {
    const NetlinkHost& host;
    const nlmsghdr& header;
    Attributes attributes{};

    [[nodiscard]] std::optional<std::uint32_t> number(std::uint16_t attribute) const {
        const nlattr* const found = attributes[attribute];
        return found == nullptr || mnl_attr_get_payload_len(found) != sizeof(std::uint32_t)
                   ? std::nullopt
                   : std::optional(mnl_attr_get_u32(found));
    }
    [[nodiscard]] std::string_view text(std::uint16_t attribute) const {
        const nlattr* const found = attributes[attribute];
        return found == nullptr ? std::string_view()
                                : std::string_view(mnl_attr_get_str(found),
                                                   strnlen(mnl_attr_get_str(found),
                                                           mnl_attr_get_payload_len(found)));
    }
    // The device that the request names.
    [[nodiscard]] std::optional<NetlinkDevice> device() const {
        const auto index = number(RDMA_NLDEV_ATTR_DEV_INDEX);
        return index ? find_device(host, *index) : std::nullopt;
    }
};

// A command: its answer to one who asks for one thing, and to one who asks for all. Each returns an
// errno. Without `dump`, whoever asks for all gets what `get` answers.
using Handler = int (*)(const Request&, Answers&);
struct CommandRow {
    std::uint32_t command;
    Handler get;
    Handler dump;
};

int get_device(const Request& request, Answers& answers) {
    const auto device = request.device();
    if (!device) {
        return EINVAL;
    }
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_GET), 0);
    put_device(message, *device);
    answers.push_back(message.bytes());
    return 0;
}

int dump_devices(const Request& request, Answers& answers) {
    for (std::uint32_t i = 0; i < request.host.hcas.size(); ++i) {
        NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_GET), NLM_F_MULTI);
        put_device(message, *find_device(request.host, i));
        answers.push_back(message.bytes());
    }
    return 0;
}

int get_port(const Request& request, Answers& answers) {
    const auto device = request.device();
    const auto port = request.number(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!device || !port || !device->hca->has_port(*port)) {
        return EINVAL;
    }
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_GET), 0);
    put_port(message, *device, *port);
    answers.push_back(message.bytes());
    return 0;
}

int dump_ports(const Request& request, Answers& answers) {
    const auto device = request.device();
    if (!device) {
        return EINVAL;
    }
    for (std::uint32_t port = 1; port <= device->hca->port_count(); ++port) {
        NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_PORT_GET), NLM_F_MULTI);
        put_port(message, *device, port);
        answers.push_back(message.bytes());
    }
    return 0;
}

// Modes of network namespaces, which there are none of, and of fork(2), which devices survive.
int get_system(const Request& request, Answers& answers) {
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_SYS_GET), 0);
    message.put8(RDMA_NLDEV_SYS_ATTR_NETNS_MODE, 1);
    message.put8(RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK, 1);
    answers.push_back(message.bytes());
    return 0;
}

int get_summary(const Request& request, Answers& answers) {
    const auto device = request.device();
    if (!device) {
        return EINVAL;
    }
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_RES_GET), 0);
    put_summary(message, request.host, *device);
    answers.push_back(message.bytes());
    return 0;
}

int dump_summaries(const Request& request, Answers& answers) {
    for (std::uint32_t i = 0; i < request.host.hcas.size(); ++i) {
        NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_RES_GET), NLM_F_MULTI);
        put_summary(message, request.host, *find_device(request.host, i));
        answers.push_back(message.bytes());
    }
    return 0;
}

template <std::uint32_t Command>
int get_object(const Request& request, Answers& answers) {
    const ObjectKind& kind = *find_kind(Command);
    const auto device = request.device();
    const auto number = request.number(kind.number);
    if (!device || !number) {
        return EINVAL;
    }
    NetlinkMessage message(request.header, type_of(Command), 0);
    put_handle(message, *device);
    bool is_found = false;
    kind.visit(request.host, *device, [&](const NetlinkObject& object) {
        if (object.number == *number && !is_found) {
            is_found = true;
            object.put(message);
        }
    });
    if (!is_found) {
        return ENOENT;
    }
    answers.push_back(message.bytes());
    return 0;
}

// Puts as many objects into a message as a program has room for.
class ObjectDump {
  public:
    ObjectDump(const Request& request, const NetlinkDevice& device, const ObjectKind& kind,
               Answers& answers)
        : request_(request), device_(device), kind_(kind), answers_(answers) {}

    void add(const NetlinkObject& object) {
        constexpr std::size_t kMostObject = 512;
        if (message_ && message_->size() + kMostObject > NetlinkMessage::kMostBytes) {
            finish();
        }
        if (!message_) {
            message_.emplace(request_.header, type_of(kind_.command), NLM_F_MULTI);
            put_handle(*message_, device_);
            table_ = message_->open(kind_.table);
        }
        nlattr* const entry = message_->open(kind_.entry);
        object.put(*message_);
        message_->close(entry);
    }
    void finish() {
        if (message_) {
            message_->close(table_);
            answers_.push_back(message_->bytes());
            message_.reset();
        }
    }

  private:
    const Request& request_;
    const NetlinkDevice& device_;
    const ObjectKind& kind_;
    Answers& answers_;
    std::optional<NetlinkMessage> message_;
    nlattr* table_ = nullptr;
};

template <std::uint32_t Command>
int dump_objects(const Request& request, Answers& answers) {
    const ObjectKind& kind = *find_kind(Command);
    const auto device = request.device();
    if (!device) {
        return EINVAL;
    }
    const auto port = request.number(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (port && !device->hca->has_port(*port)) {
        return EINVAL;
    }
    ObjectDump dump(request, *device, kind, answers);
    kind.visit(request.host, *device, [&](const NetlinkObject& object) {
        if (!port || object.port == *port) {
            dump.add(object);
        }
    });
    dump.finish();
    return 0;
}

// The counters of a port; those that programs bind to queue pairs do not exist here.
int get_statistics(const Request& request, Answers& answers) {
    const auto device = request.device();
    const auto port = request.number(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (request.attributes[RDMA_NLDEV_ATTR_STAT_RES] != nullptr) {
        return EOPNOTSUPP;
    }
    if (!device || !port || !device->hca->has_port(*port)) {
        return EINVAL;
    }
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_STAT_GET), 0);
    put_handle(message, *device);
    message.put32(RDMA_NLDEV_ATTR_PORT_INDEX, *port);
    put_counters(message, *device, *port);
    answers.push_back(message.bytes());
    return 0;
}

int dump_statistics(const Request& request, Answers& /*answers*/) {
    return request.number(RDMA_NLDEV_ATTR_STAT_RES) ? 0 : EINVAL;
}

int get_character_device(const Request& request, Answers& answers) {
    if (request.text(RDMA_NLDEV_ATTR_CHARDEV_TYPE) != "rdma_cm") {
        return request.attributes[RDMA_NLDEV_ATTR_CHARDEV_TYPE] == nullptr ? EINVAL : ENODATA;
    }
    NetlinkMessage message(request.header, type_of(RDMA_NLDEV_CMD_GET_CHARDEV), 0);
    message.put64(RDMA_NLDEV_ATTR_CHARDEV, makedev(kMiscMajor, kRdmaCmMinor));
    message.put64(RDMA_NLDEV_ATTR_CHARDEV_ABI, kRdmaCmAbi);
    message.put_text(RDMA_NLDEV_ATTR_CHARDEV_NAME, "rdma_cm");
    answers.push_back(message.bytes());
    return 0;
}

int refuse_change(const Request& /*request*/, Answers& /*answers*/) {
    return EOPNOTSUPP;
}

constexpr auto kCommands = std::to_array<CommandRow>({
    {RDMA_NLDEV_CMD_GET, get_device, dump_devices},
    {RDMA_NLDEV_CMD_SET, refuse_change, nullptr},
    {RDMA_NLDEV_CMD_NEWLINK, refuse_change, nullptr},
    {RDMA_NLDEV_CMD_DELLINK, refuse_change, nullptr},
    {RDMA_NLDEV_CMD_PORT_GET, get_port, dump_ports},
    {RDMA_NLDEV_CMD_SYS_GET, get_system, nullptr},
    {RDMA_NLDEV_CMD_SYS_SET, refuse_change, nullptr},
    {RDMA_NLDEV_CMD_RES_GET, get_summary, dump_summaries},
    {RDMA_NLDEV_CMD_RES_QP_GET, get_object<RDMA_NLDEV_CMD_RES_QP_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_QP_GET>},
    {RDMA_NLDEV_CMD_RES_CM_ID_GET, get_object<RDMA_NLDEV_CMD_RES_CM_ID_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_CM_ID_GET>},
    {RDMA_NLDEV_CMD_RES_CQ_GET, get_object<RDMA_NLDEV_CMD_RES_CQ_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_CQ_GET>},
    {RDMA_NLDEV_CMD_RES_MR_GET, get_object<RDMA_NLDEV_CMD_RES_MR_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_MR_GET>},
    {RDMA_NLDEV_CMD_RES_PD_GET, get_object<RDMA_NLDEV_CMD_RES_PD_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_PD_GET>},
    {RDMA_NLDEV_CMD_RES_CTX_GET, get_object<RDMA_NLDEV_CMD_RES_CTX_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_CTX_GET>},
    {RDMA_NLDEV_CMD_RES_SRQ_GET, get_object<RDMA_NLDEV_CMD_RES_SRQ_GET>,
     dump_objects<RDMA_NLDEV_CMD_RES_SRQ_GET>},
    {RDMA_NLDEV_CMD_GET_CHARDEV, get_character_device, nullptr},
    {RDMA_NLDEV_CMD_STAT_GET, get_statistics, dump_statistics},
    {RDMA_NLDEV_CMD_STAT_SET, refuse_change, nullptr},
    {RDMA_NLDEV_CMD_STAT_DEL, refuse_change, nullptr},
});

// The header of what failed, and of an error the whole of it (netlink(7)).
void acknowledge(const nlmsghdr& request, int error, Answers& answers) {
    NetlinkMessage message(request, NLMSG_ERROR, 0);
    const int code = -error;
    const std::size_t echoed =
        std::min<std::size_t>(error == 0 ? sizeof request : request.nlmsg_len,
                              NetlinkMessage::kMostBytes - sizeof request - sizeof code);
    message.append(std::as_bytes(std::span(&code, 1)));
    message.append({reinterpret_cast<const std::byte*>(&request), echoed});
    answers.push_back(message.bytes());
}

void finish_dump(const nlmsghdr& request, Answers& answers) {
    NetlinkMessage message(request, NLMSG_DONE, NLM_F_MULTI);
    const int code = 0;
    message.append(std::as_bytes(std::span(&code, 1)));
    answers.push_back(message.bytes());
}

int note_attribute(const nlattr* attribute, void* data) {
    Attributes& attributes = *static_cast<Attributes*>(data);
    if (mnl_attr_get_type(attribute) < attributes.size()) {
        attributes[mnl_attr_get_type(attribute)] = attribute;
    }
    return MNL_CB_OK;
}

void answer_one(const NetlinkHost& host, const nlmsghdr& header, Answers& answers) {
    if ((header.nlmsg_flags & NLM_F_REQUEST) == 0 || header.nlmsg_type < NLMSG_MIN_TYPE) {
        return;
    }
    Request request{host, header};
    mnl_attr_parse(&header, 0, note_attribute, &request.attributes);
    const auto row = std::find_if(kCommands.begin(), kCommands.end(), [&](const auto& entry) {
        return type_of(entry.command) == header.nlmsg_type;
    });
    int error = EINVAL;
    const bool wants_all =
        (header.nlmsg_flags & NLM_F_DUMP) != 0 && row != kCommands.end() && row->dump != nullptr;
    if (row != kCommands.end()) {
        error = (wants_all ? row->dump : row->get)(request, answers);
    }
    if (wants_all && error == 0) {
        finish_dump(header, answers);
    } else if (error != 0 || (header.nlmsg_flags & NLM_F_ACK) != 0) {
        acknowledge(header, error, answers);
    }
}

}  // namespace

std::vector<NetlinkBytes> answer_rdma_netlink(const NetlinkHost& host,
                                              std::span<const std::byte> written) {
    Answers answers;
    std::vector<std::byte> aligned(written.begin(), written.end());
    const auto* header = reinterpret_cast<const nlmsghdr*>(aligned.data());
    int rest = static_cast<int>(aligned.size());
    while (mnl_nlmsg_ok(header, rest)) {
        answer_one(host, *header, answers);
        header = mnl_nlmsg_next(header, &rest);
    }
    return answers;
}

}  // namespace simverbs
