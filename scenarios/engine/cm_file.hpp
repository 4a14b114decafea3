// /dev/infiniband/rdma_cm as a program on one host has it open, in the world of this process: the
// commands that librdmacm writes (rdma/rdma_user_cm.h). Each answers 0 or an errno.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <rdma/rdma_user_cm.h>

#include <infiniband/verbs.h>

namespace scenarios {

// An address and a port number, as bind(2) takes them.
struct CmAddress {
    __kernel_sockaddr_storage bytes{};
    std::uint16_t size = 0;
};
// `text` as inet_pton(3) reads it. Nothing: it is no address.
std::optional<CmAddress> cm_address(const std::string& text, std::uint16_t port);

class CmFile {
  public:
    static constexpr std::size_t kMostPrivateData = RDMA_MAX_PRIVATE_DATA - 1;  // a byte counts it

    explicit CmFile(const std::string& host);
    ~CmFile();
    CmFile(const CmFile&) = delete;
    CmFile& operator=(const CmFile&) = delete;

    // 0, or why it could not be opened; then every command is EBADF.
    [[nodiscard]] int error() const { return error_; }

    // `name` comes with each event of the id and is not 0. `type`: UD has the port space UDP, RC
    // has TCP, UC has IB.
    int create_id(std::uint64_t name, ibv_qp_type type, std::uint32_t& id);
    int destroy_id(std::uint32_t id);
    int set_ack_timeout(std::uint32_t id, std::uint8_t code);
    int bind(std::uint32_t id, const CmAddress& address);
    int listen(std::uint32_t id, std::uint32_t backlog);
    int resolve_addr(std::uint32_t id, const CmAddress& to, std::uint32_t timeout_ms);
    int resolve_route(std::uint32_t id, std::uint32_t timeout_ms);
    int connect(std::uint32_t id, const rdma_ucm_conn_param& parameters);
    // `parameters`: nullptr answers a reply (RTU). `name` is that of the accepted id.
    int accept(std::uint32_t id, std::uint64_t name, const rdma_ucm_conn_param* parameters);
    int reject(std::uint32_t id, std::uint8_t reason, const std::string& private_data);
    int disconnect(std::uint32_t id);
    int join(std::uint32_t id, std::uint64_t name, const CmAddress& group,
             std::uint32_t& membership);
    int leave(std::uint32_t membership);
    // Fills in what to modify the queue pair of the id with so that it goes to `state`.
    int qp_attributes(std::uint32_t id, ibv_qp_state state, ibv_qp_attr& attributes, int& mask);
    // Nothing: none waits. No time passes.
    std::optional<rdma_ucm_event_resp> next_event();

  private:
    template <class Command>
    int write(std::uint32_t number, const Command& command, std::size_t response_bytes = 0);

    int descriptor_ = -1;
    int error_ = 0;
};

}  // namespace scenarios
