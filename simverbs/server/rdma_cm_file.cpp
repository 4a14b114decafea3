#include "simverbs/server/rdma_cm_file.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "simverbs/host_rdma_cm/rdma_cm_trace.hpp"

namespace simverbs {

using rdma_cm::UcmaInputs;
using rdma_cm::UcmaReply;

RdmaCmFile::RdmaCmFile(Simulation& simulation, const Hca& hca, rdma_cm::Ucma& ucma, int pipe)
    : simulation_(simulation), node_(hca.node()), file_(ucma, *this), pipe_(pipe) {
    fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

RdmaCmFile::~RdmaCmFile() {
    close(pipe_);
}

bool RdmaCmFile::is_closed() const {
    pollfd look{pipe_, 0, 0};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLERR) != 0;
}

UcmaReply RdmaCmFile::execute(std::span<const std::byte> message, RdmaCmFile* named) {
    did_something_ = false;
    RdmaCmRequest request;
    if (message.size() < sizeof request) {
        return {.error = EIO};
    }
    std::memcpy(&request, message.data(), sizeof request);
    const std::span<const std::byte> rest = message.subspan(sizeof request);
    if (request.written > rest.size() || request.option != rest.size() - request.written) {
        return {.error = EIO};
    }
    const std::span bytes(static_cast<const std::uint8_t*>(static_cast<const void*>(rest.data())),
                          rest.size());
    UcmaInputs inputs{.descriptor_is_open = request.descriptor_is_open != 0,
                      .file = named == nullptr ? nullptr : &named->file_};
    if (request.option != 0) {
        inputs.option = bytes.subspan(request.written);
    }
    const std::span<const std::uint8_t> written = bytes.first(request.written);
    UcmaReply reply = file_.write(written, inputs);
    did_something_ = rdma_cm::trace_command(simulation_, node_, written, reply);
    return reply;
}

void RdmaCmFile::event_available(rdma_cm::UcmaFile& /*file*/) {
    ++deliveries_;
    update_pipe();
}

// By a read end of its own: the program's may block, and a write after it was closed would raise
// SIGPIPE.
void RdmaCmFile::update_pipe() {
    if (is_readable_ == has_event()) {
        return;
    }
    const int reader =
        open(fmt::format("/proc/self/fd/{}", pipe_).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (reader < 0) {
        return;
    }
    char byte = 0;
    const ssize_t moved = is_readable_ ? read(reader, &byte, 1) : write(pipe_, &byte, 1);
    if (moved == 1) {
        is_readable_ = !is_readable_;
    }
    close(reader);
}

}  // namespace simverbs
