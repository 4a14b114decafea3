// Queue pairs of every service on two hosts, with every personality, by nothing but the C API.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "simverbs/model/services.hpp"

#include "tests/verbs/two_hosts.hpp"

namespace conformance {

using simverbs::Service;
using verbs_test::Connection;
using verbs_test::End;

// Whose behaviour, on which link layer. Soft-RoCE is on Ethernet alone and has neither XRC nor raw
// packets, which are Ethernet's.
struct Subject {
    const char* personality;
    Service service;
    bool ethernet;
};
inline constexpr unsigned kFlush = 14;  // IBV_WR_FLUSH: newer than Debian 12's header
std::vector<Subject> every_subject();
std::string name_of(const Subject& subject);
void PrintTo(const Subject& subject, std::ostream* out);  // NOLINT(readability-identifier-naming)

ibv_qp_type type_of(Service service);

// The objects that an XRC queue pair needs beside a PD: a domain, and a shared receive queue in it.
class XrcDomain {
  public:
    explicit XrcDomain(End& end);
    ~XrcDomain();
    XrcDomain(const XrcDomain&) = delete;
    XrcDomain& operator=(const XrcDomain&) = delete;

    ibv_xrcd* domain = nullptr;
    ibv_srq* srq = nullptr;
    std::uint32_t number = 0;  // of the shared receive queue
};

// In RESET, its completions in end.cq. `operations`: of enum ibv_qp_create_send_ops_flags, 0 for a
// queue pair of ibv_post_send() alone. nullptr and errno where there is none.
ibv_qp* make_qp(End& end, Service service, const XrcDomain* xrc = nullptr,
                std::uint64_t operations = 0);

// A send request with its segments.
class Work {
  public:
    Work(unsigned opcode, std::uint64_t id);

    Work& with(unsigned flags);
    Work& unsignaled();
    Work& from(const ibv_sge& segment);
    Work& to(std::uint64_t address, std::uint32_t rkey);
    Work& atomic(std::uint64_t address, std::uint32_t rkey, std::uint64_t compare_add,
                 std::uint64_t swap = 0);
    Work& key(std::uint32_t rkey);  // to invalidate
    Work& bind(ibv_mw* mw, const ibv_mw_bind_info& info);

    ibv_send_wr wr{};
    std::vector<ibv_sge> segments;
};

// The same request by ibv_post_send(), or by the function of ibv_qp_ex that stands for its opcode.
int post_to(ibv_qp* qp, Work work);
int post_by_function(ibv_qp_ex* qp, const Work& work);
// The flag with which that function is asked for; 0 for an opcode that has none.
std::uint64_t function_flag(unsigned opcode);

// `a` sends to `b` with the service of the subject, both in RTS: a->qp is the sender, b->qp the
// receiver, and b->receive() posts what the messages of `a` take.
class ConnectedAs : public verbs_test::TwoHosts {
  protected:
    void TearDown() override;

    // `operations`: of the sender.
    void connect_as(const Subject& subject, const Connection& with = {},
                    std::uint64_t operations = 0);
    // To b, in whichever way the service addresses it.
    void address(Work& work);
    int post(Work work);
    int post_as_it_is(const Work& work);

    [[nodiscard]] Service service() const { return service_; }

    // Raw packets: the bytes before the payload of a frame to b, at the start of a's memory.
    static constexpr std::uint32_t kFrameHeader = 14;
    static constexpr std::uint32_t kShortestFrame = 60;
    std::uint32_t shared_queue = 0;  // XRC: that requests name

  private:
    void bring_up_xrc(const Connection& with);
    void bring_up_raw();
    void replace(End& end, ibv_qp* qp);

    Service service_ = Service::kRc;
    std::unique_ptr<XrcDomain> there_;
    ibv_flow* flow_ = nullptr;
};

}  // namespace conformance
