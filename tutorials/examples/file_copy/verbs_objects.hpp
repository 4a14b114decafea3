// Verbs objects that destroy themselves, over plain <infiniband/verbs.h>. What cannot be made is
// thrown as std::system_error, with the errno and the name of the verb.
#ifndef VERBS_OBJECTS_HPP
#define VERBS_OBJECTS_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include <infiniband/verbs.h>

struct DestroyVerbsObject {
    void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
    void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
    void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
    void operator()(ibv_ah* ah) const { ibv_destroy_ah(ah); }
    void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
};

template <class T>
using Owned = std::unique_ptr<T, DestroyVerbsObject>;

// Takes what a verb has returned: Owned<ibv_pd> pd = own(ibv_alloc_pd(context), "ibv_alloc_pd").
template <class T>
Owned<T> own(T* object, const char* verb) {
    if (object == nullptr) {
        throw std::system_error(errno, std::generic_category(), verb);
    }
    return Owned<T>(object);
}

// Checks what a verb has returned that answers with an errno.
inline void require(int error, const char* verb) {
    if (error != 0) {
        throw std::system_error(error, std::generic_category(), verb);
    }
}

inline Owned<ibv_mr> register_memory(ibv_pd* pd, void* memory, std::size_t bytes, int rights) {
    return own(ibv_reg_mr(pd, memory, bytes, rights), "ibv_reg_mr");
}

// A queue pair in RESET with `depth` requests a queue, one piece of memory each. Every send
// completes.
inline Owned<ibv_qp> make_queue_pair(ibv_pd* pd, ibv_cq* cq, ibv_qp_type type,
                                     std::uint32_t depth) {
    ibv_qp_init_attr init{};
    init.qp_type = type;
    init.send_cq = init.recv_cq = cq;
    init.sq_sig_all = 1;
    init.cap.max_send_wr = init.cap.max_recv_wr = depth;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    return own(ibv_create_qp(pd, &init), "ibv_create_qp");
}

// The first `bytes` at `memory`, which lies in the region.
inline ibv_sge piece_of(const ibv_mr& mr, const void* memory, std::size_t bytes) {
    return {reinterpret_cast<std::uintptr_t>(memory), static_cast<std::uint32_t>(bytes), mr.lkey};
}

inline int post_receive(ibv_qp* qp, std::uint64_t id, ibv_sge piece) {
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &request, &bad);
}

#endif
