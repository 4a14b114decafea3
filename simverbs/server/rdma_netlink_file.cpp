#include "simverbs/server/rdma_netlink_file.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs {
namespace {

constexpr int kRequestsPerTurn = 64;
constexpr std::size_t kMostRequest = 8192;

}  // namespace

RdmaNetlinkFile::RdmaNetlinkFile(int socket) : socket_(socket) {
    fcntl(socket_, F_SETFL, O_NONBLOCK);
}

RdmaNetlinkFile::~RdmaNetlinkFile() {
    close(socket_);
}

bool RdmaNetlinkFile::has_unread() const {
    int bytes = 0;
    return !waiting_.empty() || (ioctl(socket_, SIOCOUTQ, &bytes) == 0 && bytes > 0);
}

bool RdmaNetlinkFile::take_written(const Answer& answer) {
    std::array<std::byte, kMostRequest> request;
    for (int i = 0; i < kRequestsPerTurn; ++i) {
        const ssize_t length = recv(socket_, request.data(), request.size(), MSG_DONTWAIT);
        if (length <= 0) {
            return length < 0 && (errno == EAGAIN || errno == EINTR);
        }
        for (NetlinkBytes& message :
             answer(std::span(request).first(static_cast<std::size_t>(length)))) {
            ++deliveries_;
            waiting_.push_back(std::move(message));
        }
        flush();
    }
    return true;
}

void RdmaNetlinkFile::flush() {
    while (!waiting_.empty() && put(waiting_.front())) {
        waiting_.pop_front();
    }
}

// False when the socket is full. To a program that has gone nothing is said any more.
bool RdmaNetlinkFile::put(const NetlinkBytes& message) {
    return send_message(socket_, std::span(message), {}, false) ||
           (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace simverbs
