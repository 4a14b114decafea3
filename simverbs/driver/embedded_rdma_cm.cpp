#include "simverbs/driver/embedded_rdma_cm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simverbs/host_rdma_cm/rdma_cm_trace.hpp"

namespace simverbs::driver {

using rdma_cm::NumberedHca;
using rdma_cm::UcmaInputs;
using rdma_cm::UcmaReply;

namespace {

std::atomic<RdmaCmFileNumber> g_last_file{0};

}  // namespace

// The program's descriptor is one end of a pair of sockets. A second descriptor of that end takes
// the message back once no event waits.
class EmbeddedRdmaCm::File final : private rdma_cm::UcmaObserver {
  public:
    // `node`: the host's in traces.
    File(rdma_cm::Ucma& ucma, EmbeddedRdmaCm& owner, fabric::NodeId node, std::array<int, 2> ends)
        : owner_(owner), node_(node), file_(ucma, *this), writer_(ends[0]), taker_(ends[1]) {}
    // A forked child may have copies of both ends: the program is to see the end all the same.
    ~File() {
        shutdown(writer_, SHUT_RDWR);
        ::close(writer_);
        ::close(taker_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] rdma_cm::UcmaFile& file() { return file_; }
    [[nodiscard]] fabric::NodeId node() const { return node_; }

    void update() {
        if (is_readable_ == file_.has_event()) {
            return;
        }
        char byte = 0;
        const ssize_t moved = is_readable_ ? recv(taker_, &byte, 1, MSG_DONTWAIT)
                                           : send(writer_, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (moved == 1) {
            is_readable_ = !is_readable_;
        }
    }

  private:
    void event_available(rdma_cm::UcmaFile& /*file*/) override {
        update();
        owner_.delivered_();
    }

    EmbeddedRdmaCm& owner_;
    fabric::NodeId node_;
    rdma_cm::UcmaFile file_;
    int writer_;
    int taker_;
    bool is_readable_ = false;
};

EmbeddedRdmaCm::EmbeddedRdmaCm(Simulation& simulation, std::vector<NumberedHca> seen,
                               std::function<void()> delivered)
    : simulation_(simulation), seen_(std::move(seen)), delivered_(std::move(delivered)) {}

EmbeddedRdmaCm::~EmbeddedRdmaCm() = default;

// Hosts that the process does not see have kernels, too, which reject requests.
int EmbeddedRdmaCm::make_kernels(bool by_host) {
    if (!kernels_.empty() && is_by_host_ == by_host) {
        return 0;
    }
    if (!files_.empty()) {
        return EBUSY;
    }
    std::map<std::string, std::vector<NumberedHca>> groups;
    for (std::size_t rank = 0; rank < simulation_.hca_count(); ++rank) {
        const auto own = std::ranges::find(seen_, rank, &NumberedHca::rank);
        const bool is_seen = own != seen_.end();
        groups[is_seen && !by_host ? "" : simulation_.hca(rank).host()].push_back(
            is_seen ? *own : NumberedHca{rank, 0});
    }
    kernels_.clear();
    for (const auto& [host, hcas] : groups) {
        kernels_.try_emplace(host, simulation_, hcas);
    }
    is_by_host_ = by_host;
    return 0;
}

EmbeddedRdmaCm::Opened EmbeddedRdmaCm::open(std::string_view host) {
    const auto first = std::ranges::find_if(seen_, [&](const NumberedHca& hca) {
        return host.empty() || simulation_.hca(hca.rank).host() == host;
    });
    if (first == seen_.end()) {
        return {.error = ENXIO};
    }
    if (const int error = make_kernels(!host.empty()); error != 0) {
        return {.error = error};
    }
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        return {.error = errno};
    }
    const int descriptor = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) {
        const int error = errno;
        ::close(ends[0]);
        ::close(ends[1]);
        return {.error = error};
    }
    const RdmaCmFileNumber number = ++g_last_file;
    files_.emplace(number, std::make_unique<File>(kernels_.find(host)->second.ucma(), *this,
                                                  simulation_.hca(first->rank).node(), ends));
    return {.number = number, .descriptor = descriptor};
}

void EmbeddedRdmaCm::close(RdmaCmFileNumber number) {
    files_.erase(number);
    update_descriptors();
}

EmbeddedRdmaCm::File* EmbeddedRdmaCm::find(RdmaCmFileNumber number) const {
    const auto found = files_.find(number);
    return found == files_.end() ? nullptr : found->second.get();
}

UcmaReply EmbeddedRdmaCm::write(RdmaCmFileNumber number, std::span<const std::uint8_t> written,
                                UcmaInputs inputs, RdmaCmFileNumber named) {
    File* const file = find(number);
    if (file == nullptr) {
        return {.error = EIO};
    }
    File* const other = find(named);
    inputs.file = other == nullptr ? nullptr : &other->file();
    UcmaReply reply = file->file().write(written, inputs);
    if (is_by_host_) {
        rdma_cm::trace_command(simulation_, file->node(), written, reply);
    }
    update_descriptors();
    return reply;
}

// A command may take events from any file: those of an id that moves, or that ends.
void EmbeddedRdmaCm::update_descriptors() {
    for (const auto& [number, file] : files_) {
        file->update();
    }
}

}  // namespace simverbs::driver
