#include "tests/server/hostile_client.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace server_test {

using simverbs::AttachReply;
using simverbs::AttachRequest;
using simverbs::ClientArea;
using simverbs::CommandReply;
using simverbs::CommandRequest;

HostileClient::HostileClient(const std::string& world)
    : socket_(simverbs::connect_to_world(world).value_or(-1)) {}

HostileClient::~HostileClient() {
    hang_up();
    for (const int descriptor : {wake_, descriptor_}) {
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    if (area_ != nullptr) {
        munmap(area_, sizeof *area_);
    }
}

void HostileClient::hang_up() {
    if (socket_ >= 0) {
        close(std::exchange(socket_, -1));
    }
}

int HostileClient::attach(const std::string& host) {
    static const std::uint64_t kProbe = 0x1234'5678'9ABC'DEF0;
    AttachRequest request;
    std::memcpy(request.host.data(), host.data(), std::min(host.size(), request.host.size()));
    request.probe_address = reinterpret_cast<std::uint64_t>(&kProbe);
    request.probe_value = kProbe;
    AttachReply reply;
    std::array<int, 2> descriptors{};
    if (!send(std::as_bytes(std::span(&request, 1))) ||
        simverbs::receive_message(socket_, std::as_writable_bytes(std::span(&reply, 1)),
                                  descriptors, true) != sizeof reply) {
        return -1;
    }
    if (reply.error == 0) {
        void* area = mmap(nullptr, sizeof(ClientArea), PROT_READ | PROT_WRITE, MAP_SHARED,
                          descriptors[0], 0);
        area_ = area == MAP_FAILED ? nullptr : static_cast<ClientArea*>(area);
        close(descriptors[0]);
        wake_ = descriptors[1];
    }
    return static_cast<int>(reply.error);
}

bool HostileClient::send(std::span<const std::byte> bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(bytes.size());
}

bool HostileClient::send_command(const CommandRequest& request) const {
    return send(std::as_bytes(std::span(&request, 1)));
}

int HostileClient::command(const CommandRequest& request, CommandReply& reply) {
    std::array<int, 1> descriptors{};
    if (!send_command(request) ||
        simverbs::receive_message(socket_, std::as_writable_bytes(std::span(&reply, 1)),
                                  descriptors, true) != sizeof reply) {
        return -1;
    }
    if (descriptors[0] >= 0) {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
        descriptor_ = descriptors[0];
    }
    return static_cast<int>(reply.error);
}

int HostileClient::execute(simverbs::CommandCode code, std::span<const std::byte> command,
                           std::span<std::byte> reply) {
    CommandRequest request;
    request.code = code;
    request.length = static_cast<std::uint32_t>(command.size());
    request.reply_length = static_cast<std::uint32_t>(reply.size());
    std::memcpy(request.bytes.data(), command.data(), command.size());
    CommandReply answer;
    const int error = this->command(request, answer);
    std::memcpy(reply.data(), answer.bytes.data(), reply.size());
    return error;
}

Mapped HostileClient::map(std::uint64_t bytes) {
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    return base == MAP_FAILED ? Mapped{} : Mapped{static_cast<std::byte*>(base), bytes};
}

std::uint64_t odd_number(std::mt19937_64& random) {
    constexpr unsigned kBits = 64;
    switch (random() % 4) {
        case 0:
            return random() % 8;
        case 1:
            return (std::uint64_t{1} << random() % kBits) - random() % 3 + 1;
        case 2:
            return (random() % 4) << 16 | random() % 4;  // like a handle
        default:
            return random();
    }
}

void fill(std::span<std::byte> bytes, std::mt19937_64& random) {
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
        const std::uint64_t value = odd_number(random);
        std::memcpy(bytes.data() + at, &value, std::min(sizeof value, bytes.size() - at));
    }
}

}  // namespace server_test
