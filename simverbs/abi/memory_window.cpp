// Memory windows. Binding is a work request, whichever verb asks for it: of a type 2 window
// ibv_post_send(), of a type 1 window ibv_bind_mw(), which chooses the new key itself.
#include <cerrno>
#include <cstdint>

#include <infiniband/verbs.h>

#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"

namespace simverbs::abi {
namespace {

constexpr std::uint32_t kKeyByte = 0xFF;

}  // namespace

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
    AllocateMw command;
    command.pd = pd->handle;
    command.type = static_cast<std::uint32_t>(type);
    AllocateMwReply reply;
    if (const int error = as_object(pd->context).execute(command, reply); error != 0) {
        errno = error;
        return nullptr;
    }
    return new MemoryWindow(*pd, type, reply);
}

int dealloc_mw(ibv_mw* mw) {
    DeallocateMw command;
    command.handle = mw->handle;
    const int error = as_object(mw->context).execute(command);
    if (error == 0) {
        delete &as_object(mw);
    }
    return error;
}

// verbs.h has compared the window's type and protection domain. The key changes as soon as the
// request is posted (ibv_bind_mw(3)).
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_BIND_MW;
    wr.wr_id = bind->wr_id;
    wr.send_flags = bind->send_flags;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = bind->bind_info;
    const int error = post_bind(qp, wr);
    if (error == 0) {
        mw->rkey = wr.bind_mw.rkey;
    }
    return error;
}

int write_binding(const ibv_send_wr& wr, const Personality& personality, Binder binder,
                  SendWqe& wqe) {
    ibv_mw* mw = wr.bind_mw.mw;
    const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
    const bool is_type1 = mw->type == IBV_MW_TYPE_1;
    const bool verb_fits =
        binder == Binder::kVerb || !is_type1 || personality.type1_bind_by_work_request;
    const bool zero_based = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
    if (!verb_fits || (is_type1 && zero_based)) {
        return EINVAL;
    }
    if (as_object(mw->context).watch() != nullptr) {
        BufferWatch::window_key_begins((mw->rkey & ~kKeyByte) | (wr.bind_mw.rkey & kKeyByte));
    }
    put_binding({.window = mw->handle,
                 .lkey = info.mr == nullptr ? 0 : info.mr->lkey,
                 .rkey = wr.bind_mw.rkey,
                 .access = info.mw_access_flags,
                 .address = info.addr,
                 .length = info.length},
                wqe);
    if (!is_type1 && personality.type2_bind_updates_window) {
        mw->rkey = (mw->rkey & ~kKeyByte) | (wr.bind_mw.rkey & kKeyByte);
    }
    return 0;
}

}  // namespace simverbs::abi
