// Queue pairs of every service on two hosts, with every personality, by nothing but the C API.
#pragma once

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
std::vector<Subject> every_subject();
std::string name_of(const Subject& subject);

ibv_qp_type type_of(Service service);

// What an XRC queue pair needs beside a PD: a domain, and a shared receive queue in it.
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

}  // namespace conformance
