// /dev/infiniband/rdma_cm of the world in this process: the kernels of its hosts, and the files
// that are open. Everything with the world held.
//
// All hosts that the process sees are one kernel, so that an id belongs to the host of its local
// address; a task that names its host (simverbs_set_host_hook) has a kernel of that host alone.
// Which of the two it is may change while no file is open. Commands are in the trace, and so in the
// run digest, where tasks name their hosts: those of threads come in any order, since librdmacm
// holds locks of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/host_rdma_cm/host_rdma_cm.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs::driver {

// The number of an open file. Never 0, never used twice in a process.
using RdmaCmFileNumber = std::uint64_t;

class EmbeddedRdmaCm final {
  public:
    // `seen`: the devices of the process. `delivered` is called when an event begins to wait.
    EmbeddedRdmaCm(Simulation& simulation, std::vector<rdma_cm::NumberedHca> seen,
                   std::function<void()> delivered);
    ~EmbeddedRdmaCm();
    EmbeddedRdmaCm(const EmbeddedRdmaCm&) = delete;
    EmbeddedRdmaCm& operator=(const EmbeddedRdmaCm&) = delete;

    struct Opened {
        int error = 0;
        RdmaCmFileNumber number = 0;
        int descriptor = -1;  // the caller's; a socket that is readable while an event waits
    };
    // `host`: "" for all. EBUSY: files are open for all hosts and `host` is one, or the other way
    // round; ENXIO: the process has no such host.
    Opened open(std::string_view host);
    // Ends all ids of the file, as close(2) does.
    void close(RdmaCmFileNumber number);
    // As UcmaFile::write(); EIO: the file has ended. `inputs.file` is that of `named`, if it is
    // one.
    rdma_cm::UcmaReply write(RdmaCmFileNumber number, std::span<const std::uint8_t> written,
                             rdma_cm::UcmaInputs inputs, RdmaCmFileNumber named);

  private:
    class File;

    int make_kernels(bool by_host);
    [[nodiscard]] File* find(RdmaCmFileNumber number) const;
    void update_descriptors();

    Simulation& simulation_;
    std::vector<rdma_cm::NumberedHca> seen_;
    std::function<void()> delivered_;
    bool is_by_host_ = false;
    std::map<std::string, rdma_cm::HostRdmaCm, std::less<>> kernels_;  // "": of all hosts seen
    std::map<RdmaCmFileNumber, std::unique_ptr<File>> files_;
};

}  // namespace simverbs::driver
