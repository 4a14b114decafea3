/* Calls of rdma-core 59 to 65 that Debian 12's <infiniband/verbs.h> does not declare, in C and C++.

   Names begin with newer_, and the linker is told the true ones, so that this compiles beside a
   newer verbs.h too. Written apart from simverbs/abi/newer_abi.hpp: each checks the other. */
#ifndef SIMVERBS_TESTS_VERBS_NEWER_VERBS_H
#define SIMVERBS_TESTS_VERBS_NEWER_VERBS_H

/* NOLINTBEGIN(readability-identifier-naming,modernize-deprecated-headers): C, named as rdma-core */
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEWER_SYMBOL(name) __asm__(name)

/* Regions and buffers: 59 and 64; the export of a buffer: 65. */
enum {
    NEWER_REG_MR_MASK_IOVA = 1 << 0,
    NEWER_REG_MR_MASK_ADDR = 1 << 1,
    NEWER_REG_MR_MASK_FD = 1 << 2,
    NEWER_REG_MR_MASK_FD_OFFSET = 1 << 3,
    NEWER_REG_MR_MASK_DMAH = 1 << 4,
    NEWER_REG_MR_MASK_BUF = 1 << 5
};
struct newer_buf; /* opaque */
struct newer_dmah;
struct newer_mr_init_attr {
    size_t length;
    int access;
    uint64_t comp_mask; /* NEWER_REG_MR_MASK_* */
    uint64_t iova;
    void* addr;
    int fd;
    uint64_t fd_offset;
    struct newer_dmah* dmah;
    struct newer_buf* buf;
};
void* newer_alloc_buf(struct ibv_pd* pd, size_t size, struct newer_buf** buf)
    NEWER_SYMBOL("ibv_alloc_buf");
void newer_free_buf(struct newer_buf* buf) NEWER_SYMBOL("ibv_free_buf");
int newer_export_buf_dmabuf_fd(struct newer_buf* buf) NEWER_SYMBOL("ibv_export_buf_dmabuf_fd");
struct ibv_mr* newer_reg_buf_mr(struct ibv_pd* pd, struct newer_buf* buf, void* addr, size_t length,
                                int access) NEWER_SYMBOL("ibv_reg_buf_mr");
struct ibv_mr* newer_reg_mr_ex(struct ibv_pd* pd, struct newer_mr_init_attr* attr)
    NEWER_SYMBOL("ibv_reg_mr_ex");

/* A bit of ibv_parent_domain_init_attr.comp_mask: 64. */
enum { NEWER_PARENT_DOMAIN_ALLOW_CC_UNPROTECTED_ALLOC = 1 << 2 };

/* Units of 100 Mb/s: 62. */
int newer_query_port_speed(struct ibv_context* context, uint32_t port, uint64_t* speed)
    NEWER_SYMBOL("ibv_query_port_speed");

/* Completion counters: 65. */
enum {
    NEWER_COMP_CNTR_OP_SEND = 1 << 0,
    NEWER_COMP_CNTR_OP_RECV = 1 << 1,
    NEWER_COMP_CNTR_OP_RDMA_READ = 1 << 2,
    NEWER_COMP_CNTR_OP_REMOTE_RDMA_READ = 1 << 3,
    NEWER_COMP_CNTR_OP_RDMA_WRITE = 1 << 4,
    NEWER_COMP_CNTR_OP_REMOTE_RDMA_WRITE = 1 << 5
};
enum newer_comp_cntr_type { NEWER_COMP_CNTR_TYPE_WRS, NEWER_COMP_CNTR_TYPE_BYTES };
struct newer_comp_cntr_caps {
    uint64_t max_value;
    uint32_t max_counters;
    uint32_t supported_qp_attach_ops; /* NEWER_COMP_CNTR_OP_* */
};
struct newer_comp_cntr {
    struct ibv_context* context;
    uint32_t handle;
};
struct newer_comp_cntr_init_attr {
    uint32_t comp_mask;
    enum newer_comp_cntr_type type;
    uint32_t flags;
};
struct newer_qp_attach_comp_cntr_attr {
    uint32_t comp_mask;
    uint32_t op_mask; /* NEWER_COMP_CNTR_OP_* */
};
int newer_query_comp_cntr_caps(struct ibv_context* context, struct newer_comp_cntr_caps* caps,
                               size_t size) NEWER_SYMBOL("_ibv_query_comp_cntr_caps");
struct newer_comp_cntr* newer_create_comp_cntr(struct ibv_context* context,
                                               struct newer_comp_cntr_init_attr* attr)
    NEWER_SYMBOL("ibv_create_comp_cntr");
int newer_destroy_comp_cntr(struct newer_comp_cntr* counter) NEWER_SYMBOL("ibv_destroy_comp_cntr");
int newer_qp_attach_comp_cntr(struct ibv_qp* qp, struct newer_comp_cntr* counter,
                              struct newer_qp_attach_comp_cntr_attr* attr)
    NEWER_SYMBOL("ibv_qp_attach_comp_cntr");
int newer_set_comp_cntr(struct newer_comp_cntr* counter, uint64_t value)
    NEWER_SYMBOL("ibv_set_comp_cntr");
int newer_set_err_comp_cntr(struct newer_comp_cntr* counter, uint64_t value)
    NEWER_SYMBOL("ibv_set_err_comp_cntr");
int newer_inc_comp_cntr(struct newer_comp_cntr* counter, uint64_t amount)
    NEWER_SYMBOL("ibv_inc_comp_cntr");
int newer_inc_err_comp_cntr(struct newer_comp_cntr* counter, uint64_t amount)
    NEWER_SYMBOL("ibv_inc_err_comp_cntr");
int newer_read_comp_cntr(struct newer_comp_cntr* counter, uint64_t* value)
    NEWER_SYMBOL("ibv_read_comp_cntr");
int newer_read_err_comp_cntr(struct newer_comp_cntr* counter, uint64_t* value)
    NEWER_SYMBOL("ibv_read_err_comp_cntr");

#ifdef __cplusplus
}
#endif
/* NOLINTEND(readability-identifier-naming,modernize-deprecated-headers) */

#endif
