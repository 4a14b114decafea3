// /dev/infiniband/rdma_cm as it is open once: commands come as messages (RdmaCmRequest), and a pipe
// whose read end is the program's descriptor has a byte in it exactly while an event waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "simverbs/protocol/device_protocol.hpp"
#include "simverbs/rdma_cm/ucma_file.hpp"
#include "simverbs/world/simulation.hpp"

namespace simverbs {

class RdmaCmFile final : private rdma_cm::UcmaObserver {
  public:
    // On the host of `hca`. `pipe`, a write end, becomes the file's own. `ucma` and the simulation
    // outlive it.
    RdmaCmFile(Simulation& simulation, const Hca& hca, rdma_cm::Ucma& ucma, int pipe);
    // Ends all ids of the file, as close(2) does.
    ~RdmaCmFile();
    RdmaCmFile(const RdmaCmFile&) = delete;
    RdmaCmFile& operator=(const RdmaCmFile&) = delete;

    [[nodiscard]] int pipe() const { return pipe_; }
    // Events that have come so far.
    [[nodiscard]] std::uint64_t deliveries() const { return deliveries_; }
    [[nodiscard]] bool has_event() const { return file_.has_event(); }
    // Returns true if no program has a descriptor of it any more.
    [[nodiscard]] bool is_closed() const;

    // Carries out the command and traces it. Nothing here believes the message. `named` is the file
    // that the message names, or nullptr.
    rdma_cm::UcmaReply execute(std::span<const std::byte> message, RdmaCmFile* named);
    // Returns true if the last command is in the trace.
    [[nodiscard]] bool did_something() const { return did_something_; }
    // As UcmaFile has it.
    template <class F>
    void for_each_id(F&& visit) const {
        file_.for_each_id(visit);
    }
    // Makes the pipe readable, or not. To be called again where no descriptor was to be had for it.
    void update_pipe();

  private:
    void event_available(rdma_cm::UcmaFile& file) override;

    Simulation& simulation_;
    fabric::NodeId node_;
    rdma_cm::UcmaFile file_;
    int pipe_;
    bool is_readable_ = false;
    bool did_something_ = false;
    std::uint64_t deliveries_ = 0;
};

}  // namespace simverbs
