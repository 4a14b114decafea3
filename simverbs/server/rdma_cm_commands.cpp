// The files of rdma_cm that programs have open: opening, sharing them after fork(2), and commands.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "simverbs/protocol/served_protocol.hpp"
#include "simverbs/server/device_files.hpp"

namespace simverbs {
namespace {

constexpr std::size_t kMaxSharers = 64;  // processes that have a file of rdma_cm

}  // namespace

int DeviceFiles::open_rdma_cm(const DeviceFile& device, OpenFile& file, int& descriptor) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return errno;
    }
    if (rdma_cm_ == nullptr) {
        rdma_cm_ = std::make_unique<rdma_cm::RdmaCmHosts>(simulation_);
    }
    descriptor = ends[0];
    file.socket = ends[1];
    const Hca& hca = simulation_.hca(device.hca);
    file.rdma_cm = std::make_unique<RdmaCmFile>(simulation_, hca, rdma_cm_->host(hca.host()).ucma(),
                                                file.socket);
    return 0;
}

OpenDeviceReply DeviceFiles::share(const DeviceRequest& request, int connection, pid_t process) {
    OpenFile* const file = find_rdma_cm(request.file);
    if (file == nullptr || file->controls.size() >= kMaxSharers) {
        return {static_cast<std::uint32_t>(file == nullptr ? EBADF : ENFILE), 0};
    }
    file->controls.push_back({connection, process});
    new_sockets_.push_back(connection);
    processes_.try_emplace(process, process);
    return {0, file->number};
}

DeviceFiles::OpenFile* DeviceFiles::find_rdma_cm(std::uint64_t number) const {
    const auto found = std::find_if(files_.begin(), files_.end(), [number](const auto& file) {
        return file->number == number && file->rdma_cm != nullptr;
    });
    return found == files_.end() ? nullptr : found->get();
}

// Two commands of one host in one turn are of two threads or processes, and the order of their
// files is that in which they were opened: nothing says that it would be the same next time.
bool DeviceFiles::execute_commands() {
    bool any = false;
    std::size_t host_of_last = SIZE_MAX;
    for (const auto& file : files_) {
        std::vector<int> ended;
        for (Control& control : file->controls) {
            if (!std::exchange(control.is_readable, false)) {
                continue;
            }
            any = true;
            if (!execute_command(*file, control)) {
                ended.push_back(control.socket);
                continue;
            }
            if (file->rdma_cm->did_something()) {
                commands_raced_ = commands_raced_ || host_of_last == file->hca;
                host_of_last = file->hca;
            }
        }
        for (const int socket : ended) {
            end_control(*file, socket);
        }
    }
    return any;
}

// Makes descriptors readable or not before the program has the answer.
bool DeviceFiles::execute_command(OpenFile& file, const Control& control) {
    command_.resize(sizeof(RdmaCmRequest) + RdmaCmRequest::kMaxWritten + RdmaCmRequest::kMaxOption);
    const ssize_t got = receive_message(control.socket, command_, {}, false);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    const std::span message = std::span(command_).first(static_cast<std::size_t>(got));
    RdmaCmRequest request;
    std::memcpy(&request, message.data(), std::min(message.size(), sizeof request));
    OpenFile* const named = find_rdma_cm(request.descriptor_file);
    const rdma_cm::UcmaReply answer =
        file.rdma_cm->execute(message, named == nullptr ? nullptr : named->rdma_cm.get());
    commands_executed_ += file.rdma_cm->did_something() ? 1 : 0;
    commanders_.insert(file.process);
    commands_raced_ = commands_raced_ || (request.raced != 0 && file.rdma_cm->did_something());
    for (const auto& each : files_) {
        if (each->rdma_cm != nullptr) {
            each->rdma_cm->update_pipe();
        }
    }
    const RdmaCmReply reply{.error = static_cast<std::uint32_t>(answer.error),
                            .length = static_cast<std::uint32_t>(answer.bytes.size()),
                            .address = answer.address};
    std::vector<std::byte> bytes(sizeof reply + answer.bytes.size());
    std::memcpy(bytes.data(), &reply, sizeof reply);
    if (!answer.bytes.empty()) {
        std::memcpy(bytes.data() + sizeof reply, answer.bytes.data(), answer.bytes.size());
    }
    return send_message(control.socket, bytes, {}, false);
}

}  // namespace simverbs
