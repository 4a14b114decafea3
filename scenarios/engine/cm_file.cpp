#include "scenarios/engine/cm_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>

#include "simverbs/abi/rdma_cm_calls.hpp"
#include "simverbs/simverbs.h"

extern "C" {
// Declared in <infiniband/marshall.h>, which not every distribution installs.
void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from);
}

namespace scenarios {

namespace {

template <class T>
std::uint64_t address_of(T& object) {
    return reinterpret_cast<std::uintptr_t>(&object);
}

const char* name_host(void* argument) {
    return static_cast<const std::string*>(argument)->c_str();
}

}  // namespace

std::optional<CmAddress> cm_address(const std::string& text, std::uint16_t port) {
    CmAddress address;
    sockaddr_in inet{};
    inet.sin_family = AF_INET;
    inet.sin_port = htons(port);
    if (inet_pton(AF_INET, text.c_str(), &inet.sin_addr) == 1) {
        std::memcpy(&address.bytes, &inet, sizeof inet);
        address.size = sizeof inet;
        return address;
    }
    sockaddr_in6 inet6{};
    inet6.sin6_family = AF_INET6;
    inet6.sin6_port = htons(port);
    if (inet_pton(AF_INET6, text.c_str(), &inet6.sin6_addr) == 1) {
        std::memcpy(&address.bytes, &inet6, sizeof inet6);
        address.size = sizeof inet6;
        return address;
    }
    return std::nullopt;
}

CmFile::CmFile(const std::string& host) {
    std::string name = host;
    simverbs_set_host_hook(&name_host, &name);
    descriptor_ = simverbs_rdma_cm_open(O_NONBLOCK | O_CLOEXEC);
    error_ = descriptor_ < 0 ? errno : 0;
    simverbs_set_host_hook(nullptr, nullptr);
}

CmFile::~CmFile() {
    if (descriptor_ >= 0) {
        simverbs_rdma_cm_close(descriptor_);
    }
}

template <class Command>
int CmFile::write(std::uint32_t number, const Command& command, std::size_t response_bytes) {
    if (descriptor_ < 0) {
        return EBADF;
    }
    const rdma_ucm_cmd_hdr header{number, sizeof command,
                                  static_cast<std::uint16_t>(response_bytes)};
    std::array<std::uint8_t, sizeof header + sizeof command> bytes{};
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, &command, sizeof command);
    return simverbs_rdma_cm_write(descriptor_, bytes.data(), bytes.size()) < 0 ? errno : 0;
}

int CmFile::create_id(std::uint64_t name, ibv_qp_type type, std::uint32_t& id) {
    rdma_ucm_create_id_resp response{};
    rdma_ucm_create_id command{};
    command.uid = name;
    command.response = address_of(response);
    command.ps = type == IBV_QPT_UD ? RDMA_PS_UDP : type == IBV_QPT_UC ? RDMA_PS_IB : RDMA_PS_TCP;
    command.qp_type = static_cast<std::uint8_t>(type);
    const int error = write(RDMA_USER_CM_CMD_CREATE_ID, command, sizeof response);
    id = response.id;
    return error;
}

int CmFile::destroy_id(std::uint32_t id) {
    rdma_ucm_destroy_id_resp response{};
    rdma_ucm_destroy_id command{};
    command.response = address_of(response);
    command.id = id;
    return write(RDMA_USER_CM_CMD_DESTROY_ID, command, sizeof response);
}

int CmFile::set_ack_timeout(std::uint32_t id, std::uint8_t code) {
    rdma_ucm_set_option command{};
    command.optval = address_of(code);
    command.id = id;
    command.level = RDMA_OPTION_ID;
    command.optname = RDMA_OPTION_ID_ACK_TIMEOUT;
    command.optlen = sizeof code;
    return write(RDMA_USER_CM_CMD_SET_OPTION, command);
}

int CmFile::bind(std::uint32_t id, const CmAddress& address) {
    rdma_ucm_bind command{};
    command.id = id;
    command.addr_size = address.size;
    command.addr = address.bytes;
    return write(RDMA_USER_CM_CMD_BIND, command);
}

int CmFile::listen(std::uint32_t id, std::uint32_t backlog) {
    rdma_ucm_listen command{};
    command.id = id;
    command.backlog = backlog;
    return write(RDMA_USER_CM_CMD_LISTEN, command);
}

int CmFile::resolve_addr(std::uint32_t id, const CmAddress& to, std::uint32_t timeout_ms) {
    rdma_ucm_resolve_addr command{};
    command.id = id;
    command.timeout_ms = timeout_ms;
    command.dst_size = to.size;
    command.dst_addr = to.bytes;
    return write(RDMA_USER_CM_CMD_RESOLVE_ADDR, command);
}

int CmFile::resolve_route(std::uint32_t id, std::uint32_t timeout_ms) {
    rdma_ucm_resolve_route command{};
    command.id = id;
    command.timeout_ms = timeout_ms;
    return write(RDMA_USER_CM_CMD_RESOLVE_ROUTE, command);
}

int CmFile::connect(std::uint32_t id, const rdma_ucm_conn_param& parameters) {
    rdma_ucm_connect command{};
    command.id = id;
    command.conn_param = parameters;
    command.conn_param.valid = 1;
    return write(RDMA_USER_CM_CMD_CONNECT, command);
}

int CmFile::accept(std::uint32_t id, std::uint64_t name, const rdma_ucm_conn_param* parameters) {
    rdma_ucm_accept command{};
    command.id = id;
    if (parameters != nullptr) {
        command.uid = name;
        command.conn_param = *parameters;
        command.conn_param.valid = 1;
    }
    return write(RDMA_USER_CM_CMD_ACCEPT, command);
}

int CmFile::reject(std::uint32_t id, std::uint8_t reason, const std::string& private_data) {
    rdma_ucm_reject command{};
    command.id = id;
    command.reason = reason;
    command.private_data_len =
        static_cast<std::uint8_t>(std::min(private_data.size(), kMostPrivateData));
    std::memcpy(command.private_data, private_data.data(), command.private_data_len);
    return write(RDMA_USER_CM_CMD_REJECT, command);
}

int CmFile::disconnect(std::uint32_t id) {
    rdma_ucm_disconnect command{};
    command.id = id;
    return write(RDMA_USER_CM_CMD_DISCONNECT, command);
}

int CmFile::join(std::uint32_t id, std::uint64_t name, const CmAddress& group,
                 std::uint32_t& membership) {
    rdma_ucm_create_id_resp response{};
    rdma_ucm_join_mcast command{};
    command.response = address_of(response);
    command.uid = name;
    command.id = id;
    command.addr_size = group.size;
    command.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
    command.addr = group.bytes;
    const int error = write(RDMA_USER_CM_CMD_JOIN_MCAST, command, sizeof response);
    membership = response.id;
    return error;
}

int CmFile::leave(std::uint32_t membership) {
    rdma_ucm_destroy_id_resp response{};
    rdma_ucm_destroy_id command{};
    command.response = address_of(response);
    command.id = membership;
    return write(RDMA_USER_CM_CMD_LEAVE_MCAST, command, sizeof response);
}

int CmFile::qp_attributes(std::uint32_t id, ibv_qp_state state, ibv_qp_attr& attributes,
                          int& mask) {
    ib_uverbs_qp_attr response{};
    rdma_ucm_init_qp_attr command{};
    command.response = address_of(response);
    command.id = id;
    command.qp_state = state;
    const int error = write(RDMA_USER_CM_CMD_INIT_QP_ATTR, command, sizeof response);
    if (error == 0) {
        ibv_copy_qp_attr_from_kern(&attributes, &response);
        attributes.qp_state = state;
        // librdmacm (ucma_modify_qp_rtr): older kernels set bits of Ethernet, which no verb takes.
        constexpr std::uint32_t kBitsOfEthernet = 0xE0'0000;
        mask = static_cast<int>(response.qp_attr_mask & ~kBitsOfEthernet);
    }
    return error;
}

// An event that does not wait would be waited for: time would move.
std::optional<rdma_ucm_event_resp> CmFile::next_event() {
    pollfd readable{descriptor_, POLLIN, 0};
    if (descriptor_ < 0 || ::poll(&readable, 1, 0) != 1) {
        return std::nullopt;
    }
    rdma_ucm_event_resp response{};
    rdma_ucm_get_event command{};
    command.response = address_of(response);
    return write(RDMA_USER_CM_CMD_GET_EVENT, command, sizeof response) == 0
               ? std::optional(response)
               : std::nullopt;
}

}  // namespace scenarios
