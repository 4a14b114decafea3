// Two hosts, the second of which matches tags: what tests of tag matching share.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <endian.h>

#include <infiniband/tm_types.h>

#include "two_hosts.hpp"

namespace verbs_test {

// A completion with what its tag header said.
struct TagCompletion {
    std::uint64_t wr_id = 0;
    ibv_wc_status status = IBV_WC_GENERAL_ERR;
    ibv_wc_opcode opcode = IBV_WC_SEND;
    unsigned flags = 0;
    std::uint32_t bytes = 0;
    std::uint64_t tag = 0;
    std::uint32_t priv = 0;
    std::uint32_t qp_num = 0;
};

struct TagLimits {
    std::uint32_t tags = 8;
    std::uint32_t operations = 32;
    std::uint32_t receives = 16;
    std::uint32_t cq_entries = 256;
};

constexpr std::uint32_t kEveryBit = 0xFFFFFFFF;
constexpr std::uint64_t kWholeTag = ~std::uint64_t{0};

// End `b` has a shared receive queue that matches tags, and an extended completion queue.
class TagMatching : public TwoHosts {
  protected:
    void TearDown() override;
    void connect_tags(const TagLimits& limits = {}, const Connection& with = {});
    // The shared receive queue of `b` and its completion queue.
    void make_tag_queue(const TagLimits& limits);

    // Operations. They return what ibv_post_srq_ops() does; `add` leaves the handle in last_handle.
    int add(std::uint64_t receive_id, std::uint64_t tag, const std::vector<ibv_sge>& buffer,
            std::uint64_t mask = kWholeTag, int flags = IBV_OPS_SIGNALED, std::uint32_t seen = 0);
    int remove(std::uint32_t handle, int flags = IBV_OPS_SIGNALED, std::uint32_t seen = 0);
    int sync(std::uint32_t seen, int flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC);

    // Messages of `a`: a header at the beginning of its memory, `payload` bytes from kPayload on.
    static constexpr std::size_t kPayload = 4096;
    static ibv_tmh header(ibv_tmh_op opcode, std::uint64_t tag, std::uint32_t priv = 0);
    void send_eager(std::uint64_t tag, std::uint32_t payload, std::uint32_t priv = 0,
                    std::size_t from = kPayload);
    // Sends `length` bytes at `from`; `extra` bytes follow the headers.
    void send_rendezvous(std::uint64_t tag, std::uint32_t length, std::uint32_t priv = 0,
                         std::size_t from = kPayload, std::uint32_t extra = 0);
    void send_bytes(const std::vector<std::uint8_t>& bytes);

    // The next completion of `b`; polls until it is there.
    TagCompletion next();
    std::optional<TagCompletion> poll();

    ibv_cq_ex* ex = nullptr;
    ibv_srq* tags = nullptr;
    std::uint32_t last_handle = 0;
};

}  // namespace verbs_test
