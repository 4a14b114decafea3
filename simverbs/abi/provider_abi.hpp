// Prototypes of the public symbols that rdma-core exports to librdmacm and to provider libraries
// without installing a header for them, and of the private ones that are answered here.
#pragma once

#include <cstddef>
#include <cstdint>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include "simverbs/abi/export.hpp"

SIMVERBS_ABI void simverbs_abi_ibv_copy_ah_attr_from_kern(ibv_ah_attr* dst,
                                                          const ib_uverbs_ah_attr* src);
SIMVERBS_ABI void simverbs_abi_ibv_copy_qp_attr_from_kern(ibv_qp_attr* dst,
                                                          const ib_uverbs_qp_attr* src);
SIMVERBS_ABI void simverbs_abi_ibv_copy_path_rec_from_kern(ibv_sa_path_rec* dst,
                                                           const ib_user_path_rec* src);
SIMVERBS_ABI void simverbs_abi_ibv_copy_path_rec_to_kern(ib_user_path_rec* dst,
                                                         const ibv_sa_path_rec* src);

SIMVERBS_ABI int simverbs_abi_ibv_dontfork_range(void* base, std::size_t size);
SIMVERBS_ABI int simverbs_abi_ibv_dofork_range(void* base, std::size_t size);

SIMVERBS_ABI const char* simverbs_abi_ibv_get_sysfs_path();
SIMVERBS_ABI int simverbs_abi_ibv_read_sysfs_file(const char* directory, const char* file,
                                                  char* buffer, std::size_t size);

// IBVERBS_PRIVATE_*. `link` is a chain of provider buffers that we never look into.
SIMVERBS_ABI unsigned int simverbs_abi_ioctl_final_num_attrs(unsigned int num_attrs, void* link);
SIMVERBS_ABI void simverbs_abi_verbs_log(verbs_context* context, std::uint32_t level,
                                         const char* format, ...)
    __attribute__((format(printf, 3, 4)));
SIMVERBS_ABI int simverbs_abi_ibv_query_gid_type(ibv_context* context, std::uint8_t port_num,
                                                 unsigned int index, int* type);
