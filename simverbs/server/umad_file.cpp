#include "simverbs/server/umad_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"

namespace simverbs {
namespace {

constexpr std::size_t kHeader = sizeof(ib_user_mad_hdr);
// A program may write no less: the datagram's head and, of the classes that have one, RMPP's.
constexpr std::size_t kLeastDatagram = 36;
constexpr int kWritesPerTurn = 64;

fabric::DatagramAddress address_from(const ib_user_mad_hdr& header) {
    fabric::DatagramAddress to;
    to.lid = fabric::Lid(ntohs(header.lid));
    to.qp = ntohl(header.qpn);
    to.qkey = ntohl(header.qkey);
    to.sl = header.sl;
    to.path_bits = header.path_bits;
    to.pkey_index = header.pkey_index;
    if (header.grh_present != 0) {
        fabric::GlobalAddress& global = to.global.emplace();
        std::copy_n(header.gid, global.gid.bytes.size(), global.gid.bytes.begin());
        global.gid_index = header.gid_index;
        global.hop_limit = header.hop_limit;
        global.traffic_class = header.traffic_class;
        global.flow_label = ntohl(header.flow_label) & 0xFFFFF;
    }
    return to;
}

void put_address(const fabric::DatagramAddress& from, ib_user_mad_hdr& header) {
    header.lid = htons(from.lid.value());
    header.qpn = htonl(from.qp);
    header.qkey = htonl(from.qkey);
    header.sl = from.sl;
    header.path_bits = from.path_bits;
    header.pkey_index = from.pkey_index;
    if (from.global) {
        header.grh_present = 1;
        std::copy_n(from.global->gid.bytes.begin(), sizeof header.gid, header.gid);
        header.gid_index = from.global->gid_index;
        header.hop_limit = from.global->hop_limit;
        header.traffic_class = from.global->traffic_class;
        header.flow_label = htonl(from.global->flow_label);
    }
}

template <class T>
bool argument_of(const ControlRequest& request, T& argument) {
    static_assert(sizeof(T) <= ControlRequest::kMaxBytes);
    if (request.length != sizeof argument) {
        return false;
    }
    std::memcpy(&argument, request.bytes, sizeof argument);
    return true;
}

template <class Words>
void set_methods(const Words& words, fabric::AgentSpec& spec) {
    constexpr std::size_t kBits = sizeof words[0] * 8;
    for (std::size_t bit = 0; bit < spec.methods.size(); ++bit) {
        spec.methods[bit] = (words[bit / kBits] >> bit % kBits & 1) != 0;
    }
}

}  // namespace

UmadFile::UmadFile(fabric::ManagementPort& port, int socket) : port_(port), socket_(socket) {
    fcntl(socket_, F_SETFL, O_NONBLOCK);
}

UmadFile::~UmadFile() {
    for (const auto& agent : agents_) {
        if (agent) {
            port_.unregister_agent(*agent);
        }
    }
    close(socket_);
}

bool UmadFile::has_unread() const {
    int bytes = 0;
    return !waiting_.empty() || (ioctl(socket_, SIOCOUTQ, &bytes) == 0 && bytes > 0);
}

bool UmadFile::take_written() {
    for (int i = 0; i < kWritesPerTurn; ++i) {
        const ssize_t length = recv(socket_, nullptr, 0, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
        if (length <= 0) {
            return length < 0 && (errno == EAGAIN || errno == EINTR);
        }
        written_.resize(static_cast<std::size_t>(length));
        const ssize_t got = recv(socket_, written_.data(), written_.size(), MSG_DONTWAIT);
        const std::span written(written_.data(),
                                static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        const int error = send(written);
        if (error != 0 && written.size() >= kHeader) {
            ib_user_mad_hdr header{};
            std::memcpy(&header, written.data(), kHeader);
            header.status = static_cast<std::uint32_t>(error);
            hand_over(header, written.subspan(kHeader));
        }
    }
    return true;
}

int UmadFile::send(std::span<const std::uint8_t> written) {
    if (written.size() < kHeader + kLeastDatagram) {
        return EINVAL;
    }
    Sent sent{};
    std::memcpy(&sent.header, written.data(), kHeader);
    const std::span bytes = written.subspan(kHeader);
    std::copy_n(bytes.begin(), std::min(bytes.size(), sent.begin.bytes.size()),
                sent.begin.bytes.begin());
    if (sent.header.id >= agents_.size() || !agents_[sent.header.id] || is_duplicate(sent.begin)) {
        return EINVAL;
    }
    fabric::SendRequest request;
    request.bytes = bytes;
    request.to = address_from(sent.header);
    request.timeout = std::chrono::milliseconds(sent.header.timeout_ms);
    request.retries = sent.header.retries;
    request.token = ++last_token_;
    const int error = port_.send(*agents_[sent.header.id], request);
    if (error == 0) {
        sent_.emplace(request.token, sent);
    }
    return error;
}

// As the kernel: of two requests under way with one transaction id the second is refused.
bool UmadFile::is_duplicate(const fabric::mad::Datagram& wanted) const {
    using fabric::mad::is_response;
    namespace header = fabric::mad::header;
    constexpr std::uint64_t kOwnHalf = 0xFFFF'FFFF;
    return std::any_of(sent_.begin(), sent_.end(), [&wanted](const auto& entry) {
        const fabric::mad::Datagram& other = entry.second.begin;
        return (other.get(header::kTransactionId) & kOwnHalf) ==
                   (wanted.get(header::kTransactionId) & kOwnHalf) &&
               other.management_class() == wanted.management_class() && !is_response(other.bytes) &&
               !is_response(wanted.bytes);
    });
}

void UmadFile::datagram_received(const fabric::ReceivedDatagram& datagram) {
    const auto number = number_of(datagram.agent);
    if (!number) {
        return;
    }
    ib_user_mad_hdr header{};
    header.id = *number;
    header.length = static_cast<std::uint32_t>(kHeader + datagram.bytes.size());
    put_address(datagram.from, header);
    hand_over(header, datagram.bytes);
}

// Only a time-out is news: of it the program gets the head of what it sent.
void UmadFile::send_finished(const fabric::FinishedSend& send) {
    const auto found = sent_.find(send.token);
    if (found == sent_.end()) {
        return;
    }
    if (send.outcome == fabric::SendOutcome::kTimedOut) {
        ib_user_mad_hdr header = found->second.header;
        header.status = ETIMEDOUT;
        const std::size_t bytes = std::min(send.bytes.size(), fabric::mad::header::kBytes);
        hand_over(header, send.bytes.first(bytes));
    }
    sent_.erase(found);
}

void UmadFile::hand_over(const ib_user_mad_hdr& header, std::span<const std::uint8_t> bytes) {
    if (waiting_.size() >= kMaxWaiting) {
        return;
    }
    std::vector<std::uint8_t> message(kHeader + bytes.size());
    std::memcpy(message.data(), &header, kHeader);
    std::copy(bytes.begin(), bytes.end(), message.begin() + kHeader);
    ++deliveries_;
    if (!waiting_.empty() || !put(message)) {
        waiting_.push_back(std::move(message));
    }
}

void UmadFile::flush() {
    while (!waiting_.empty() && put(waiting_.front())) {
        waiting_.pop_front();
    }
}

// False when the socket is full. To a program that has gone nothing is said any more.
bool UmadFile::put(const std::vector<std::uint8_t>& message) {
    if (message.size() <= LargeMessage::kThreshold) {
        return send_message(socket_, std::as_bytes(std::span(message)), {}, false) ||
               (errno != EAGAIN && errno != EWOULDBLOCK);
    }
    const int file = memfd_create("simverbs datagram", MFD_CLOEXEC);
    if (file < 0 ||
        pwrite(file, message.data(), message.size(), 0) != static_cast<ssize_t>(message.size())) {
        if (file >= 0) {
            close(file);
        }
        return true;  // lost, as where the kernel finds no memory
    }
    const LargeMessage large{.length = message.size()};
    const std::array<int, 1> descriptors{file};
    const bool sent =
        send_message(socket_, std::as_bytes(std::span(&large, 1)), descriptors, false) ||
        (errno != EAGAIN && errno != EWOULDBLOCK);
    close(file);
    return sent;
}

std::optional<std::uint32_t> UmadFile::number_of(fabric::AgentId agent) const {
    const auto found = std::find(agents_.begin(), agents_.end(), std::optional(agent));
    return found == agents_.end()
               ? std::nullopt
               : std::optional(static_cast<std::uint32_t>(found - agents_.begin()));
}

int UmadFile::register_agent(const fabric::AgentSpec& spec, std::uint32_t& id) {
    const auto place = std::find(agents_.begin(), agents_.end(), std::nullopt);
    if (place == agents_.end()) {
        return ENOMEM;
    }
    *place = port_.register_agent(spec, *this);
    id = static_cast<std::uint32_t>(place - agents_.begin());
    return *place ? 0 : EINVAL;
}

int UmadFile::unregister_agent(std::uint32_t id) {
    if (id >= agents_.size() || !agents_[id]) {
        return EINVAL;
    }
    port_.unregister_agent(*agents_[id]);
    agents_[id].reset();
    std::erase_if(sent_, [id](const auto& entry) { return entry.second.header.id == id; });
    return 0;
}

ControlReply UmadFile::control(const ControlRequest& request) {
    ControlReply reply;
    std::memcpy(reply.bytes, request.bytes, sizeof reply.bytes);
    int error = ENOTTY;
    fabric::AgentSpec spec;
    if (request.number == IB_USER_MAD_ENABLE_PKEY) {
        error = 0;  // the header has its index in any case
    } else if (ib_user_mad_reg_req wanted{};
               request.number == IB_USER_MAD_REGISTER_AGENT && argument_of(request, wanted)) {
        spec.qp = wanted.qpn;
        spec.management_class = wanted.mgmt_class;
        spec.class_version = wanted.mgmt_class_version;
        std::copy_n(wanted.oui, spec.oui.size(), spec.oui.begin());
        spec.joins_rmpp = wanted.rmpp_version != 0;
        set_methods(wanted.method_mask, spec);
        error = register_agent(spec, wanted.id);
        std::memcpy(reply.bytes, &wanted, sizeof wanted);
    } else if (ib_user_mad_reg_req2 wanted2{};
               request.number == IB_USER_MAD_REGISTER_AGENT2 && argument_of(request, wanted2)) {
        if (wanted2.flags != 0 || (wanted2.oui & 0xFF00'0000) != 0) {
            error = EINVAL;
            wanted2.flags = 0;  // those that are supported: none
        } else {
            spec.qp = wanted2.qpn;
            spec.management_class = wanted2.mgmt_class;
            spec.class_version = wanted2.mgmt_class_version;
            spec.oui = {static_cast<std::uint8_t>(wanted2.oui >> 16),
                        static_cast<std::uint8_t>(wanted2.oui >> 8),
                        static_cast<std::uint8_t>(wanted2.oui)};
            spec.joins_rmpp = wanted2.rmpp_version != 0;
            set_methods(wanted2.method_mask, spec);
            error = register_agent(spec, wanted2.id);
        }
        std::memcpy(reply.bytes, &wanted2, sizeof wanted2);
    } else if (std::uint32_t id = 0;
               request.number == IB_USER_MAD_UNREGISTER_AGENT && argument_of(request, id)) {
        error = unregister_agent(id);
    }
    reply.error = static_cast<std::uint32_t>(error);
    return reply;
}

}  // namespace simverbs
