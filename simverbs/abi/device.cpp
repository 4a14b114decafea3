// Devices and contexts: listing, opening, closing, and what they report of themselves.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "simverbs/abi/entry_points.hpp"
#include "simverbs/abi/failure.hpp"
#include "simverbs/abi/misuse.hpp"
#include "simverbs/abi/objects.hpp"
#include "simverbs/abi/operations.hpp"
#include "simverbs/abi/process.hpp"
#include "simverbs/abi/provider_abi.hpp"
#include "simverbs/abi/warnings.hpp"
#include "simverbs/simverbs.h"

namespace simverbs::abi {
namespace {

void copy_name(char* to, std::size_t size, const std::string& from) {
    std::snprintf(to, size, "%s", from.c_str());
}

}  // namespace

Device::Device(std::uint32_t index, const DeviceInfo& info)
    : DeviceBlock{}, index_(index), info_(info) {
    device.node_type = IBV_NODE_CA;
    device.transport_type = IBV_TRANSPORT_IB;
    const std::string node = "uverbs" + std::to_string(index);
    copy_name(device.name, sizeof device.name, info.name);
    copy_name(device.dev_name, sizeof device.dev_name, node);
    copy_name(device.dev_path, sizeof device.dev_path, "/sys/class/infiniband_verbs/" + node);
    copy_name(device.ibdev_path, sizeof device.ibdev_path, "/sys/class/infiniband/" + info.name);
}

Context::Context(Device& opened, Channel& channel, std::uint32_t handle, int event_descriptor)
    : Context(opened, channel, handle, event_descriptor,
              memfd_create(kCommandDescriptorName, MFD_CLOEXEC),
              std::make_shared<EventSubjects>()) {}

// Both take events from one stream: whoever reads first has them.
Context::Context(const Context& original, int command_descriptor)
    : Context(original.device_, original.channel_, original.handle_,
              fcntl(original.older.context.async_fd, F_DUPFD_CLOEXEC, 0), command_descriptor,
              original.subjects_) {}

Context::Context(Device& opened, Channel& channel, std::uint32_t handle, int event_descriptor,
                 int command_descriptor, std::shared_ptr<EventSubjects> subjects)
    : NewerVerbsContext{},
      subjects_(std::move(subjects)),
      cqs(subjects_->cqs),
      qps(subjects_->qps),
      srqs(subjects_->srqs),
      wqs(subjects_->wqs),
      device_memories(subjects_->device_memories),
      device_(opened),
      channel_(channel),
      handle_(handle),
      generation_(Process::generation()) {
    if (warnings_wanted()) {
        watch_ = std::make_unique<BufferWatch>(Process::current().embedded() != nullptr);
    }
    older.sz = sizeof(NewerVerbsContext);
    ibv_context& context = older.context;
    context.device = opened.c_handle();
    context.cmd_fd = command_descriptor;
    context.async_fd = event_descriptor;
    context.num_comp_vectors = static_cast<int>(personality().limits.completion_vectors);
    context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&context.mutex, nullptr);
    set_operations(*this);
}

Context::~Context() {
    close(older.context.cmd_fd);
    close(older.context.async_fd);
    pthread_mutex_destroy(&older.context.mutex);
}

std::string Context::describe_objects() const {
    return device_.info().name + " with " + std::to_string(qps.size()) + " queue pairs and " +
           std::to_string(cqs.size()) + " completion queues";
}

bool Context::is_foreign() const {
    return generation_ != Process::generation();
}

namespace {

void name_inheritance() {
    static std::atomic_flag s_named;
    if (warnings_wanted() && !s_named.test_and_set()) {
        std::fprintf(stderr,
                     "simverbs: process %d was forked: what it inherited is its parent's, and "
                     "answers EIO; devices that it opens itself work\n",
                     static_cast<int>(getpid()));
    }
}

}  // namespace

bool Context::admits() const {
    if (is_foreign()) [[unlikely]] {
        name_inheritance();
        return false;
    }
    return await_running();
}

bool Context::is_end_of_world() {
    static constexpr std::chrono::milliseconds kPatience{100};
    std::call_once(subjects_->looked_for_end,
                   [this] { subjects_->is_end_of_world = channel_.has_gone(kPatience); });
    return subjects_->is_end_of_world;
}

SIMVERBS_ABI ibv_device** simverbs_abi_ibv_get_device_list(int* num_devices) {
    const std::vector<Device*> devices = Process::current().devices();
    if (const int shortage = Process::current().shortage(); shortage != 0) {
        errno = shortage;
        return nullptr;
    }
    // NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers
    auto** list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
    if (list == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    std::transform(devices.begin(), devices.end(), list,
                   [](Device* device) { return device->c_handle(); });
    if (num_devices != nullptr) {
        *num_devices = static_cast<int>(devices.size());
    }
    return list;
}

namespace {

// UCX looks for the file of a device before it opens it, and leaves out those that have none.
void name_missing_files() {
    static std::atomic_flag s_named;
    if (warnings_wanted() && Process::current().embedded() != nullptr &&
        !Process::current().has_opened_any() && access("/dev/infiniband/uverbs0", F_OK) != 0 &&
        !s_named.test_and_set()) {
        std::fprintf(stderr,
                     "simverbs: devices were listed and none was opened; a program that looks for "
                     "/dev/infiniband/uverbsN finds it where it is started by `simverbs run` or "
                     "`simverbs on`\n");
    }
}

}  // namespace

// The devices themselves stay: contexts and later lists refer to them.
SIMVERBS_ABI void simverbs_abi_ibv_free_device_list(ibv_device** list) {
    name_missing_files();
    std::free(list);
}

SIMVERBS_ABI const char* simverbs_abi_ibv_get_device_name(ibv_device* device) {
    return device->name;
}

SIMVERBS_ABI const char* simverbs_device_host(ibv_device* device) {
    return as_object(device).info().host.c_str();
}

SIMVERBS_ABI __be64 simverbs_abi_ibv_get_device_guid(ibv_device* device) {
    static_assert(std::endian::native == std::endian::little);
    return __builtin_bswap64(as_object(device).info().guid);
}

SIMVERBS_ABI int simverbs_abi_ibv_get_device_index(ibv_device* device) {
    return static_cast<int>(as_object(device).index());
}

SIMVERBS_ABI ibv_context* simverbs_abi_ibv_open_device(ibv_device* device) {
    Device& opened = as_object(device);
    Channel* channel = Process::current().channel();
    if (channel == nullptr) {
        const int shortage = Process::current().shortage();
        errno = shortage != 0 ? shortage : ENODEV;
        return nullptr;
    }
    OpenContext command;
    command.device = opened.index();
    HandleReply reply;
    int descriptor = -1;
    channel->await_running(opened.index());
    if (const int error = channel->execute(command, reply, descriptor); error != 0) {
        errno = error;
        return nullptr;
    }
    auto* context = new Context(opened, *channel, reply.handle, descriptor);
    Process::current().context_opened(*context);
    return context->c_handle();
}

// Objects that are left go with the context, as the kernel would see to.
SIMVERBS_ABI int simverbs_abi_ibv_close_device(ibv_context* handle) {
    Context& context = as_object(handle);
    if (!context.is_foreign()) {
        if (context.is_last()) {
            if (!context.qps.empty() || !context.cqs.empty()) {
                name_misuse(context, Misuse::kNotDestroyed, 0, context.describe_objects());
            }
            context.execute(CloseContext{});
        }
        Process::current().context_closed(context);
    }
    delete &context;
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_device(ibv_context* handle, ibv_device_attr* attr) {
    Context& context = as_object(handle);
    if (!context.admits()) {
        return with_errno(EIO);
    }
    const Personality& personality = context.personality();
    const DeviceLimits& limits = personality.limits;
    *attr = {};
    copy_name(attr->fw_ver, sizeof attr->fw_ver, std::string(personality.identity.firmware));
    attr->node_guid = attr->sys_image_guid =
        simverbs_abi_ibv_get_device_guid(context.device().c_handle());
    attr->max_mr_size = limits.max_mr_bytes;
    attr->page_size_cap = limits.page_size_cap;
    attr->vendor_id = personality.identity.vendor_id;
    attr->vendor_part_id = personality.identity.vendor_part_id;
    attr->hw_ver = personality.identity.hw_ver;
    attr->max_qp = limits.max_qp;
    attr->max_qp_wr = limits.max_qp_wr;
    attr->device_cap_flags = static_cast<unsigned>((limits.caps & kModelledCaps).bits);
    attr->max_sge = limits.max_sge;
    attr->max_sge_rd = limits.max_sge_rd;
    attr->max_cq = limits.max_cq;
    attr->max_cqe = limits.max_cqe;
    attr->max_mr = limits.max_mr;
    attr->max_pd = limits.max_pd;
    attr->max_mw = limits.max_mw;
    attr->max_qp_rd_atom = limits.max_qp_rd_atom;
    attr->max_res_rd_atom = limits.max_res_rd_atom;
    attr->max_qp_init_rd_atom = limits.max_qp_init_rd_atom;
    attr->atomic_cap = static_cast<ibv_atomic_cap>(limits.atomic_scope);
    attr->max_raw_ethy_qp = limits.max_raw_ethy_qp;
    attr->max_mcast_grp = limits.max_mcast_grp;
    attr->max_mcast_qp_attach = limits.max_mcast_qp_attach;
    attr->max_total_mcast_qp_attach = limits.max_total_mcast_qp_attach;
    attr->max_ah = limits.max_ah;
    attr->max_srq = limits.max_srq;
    attr->max_srq_wr = limits.max_srq_wr;
    attr->max_srq_sge = limits.max_srq_sge;
    attr->max_pkeys = limits.max_pkeys;
    attr->local_ca_ack_delay = limits.local_ca_ack_delay;
    attr->phys_port_cnt = static_cast<std::uint8_t>(context.device().info().ports);
    return 0;
}

namespace {

// enum ibv_gid_type_sysfs: what rdma-core reads of sysfs, where InfiniBand and RoCE v1 are one.
constexpr int kSysfsInfinibandOrRoceV1 = 0;
constexpr int kSysfsRoceV2 = 1;

int query_gid(ibv_context* handle, std::uint32_t port, std::uint32_t index, QueryGidReply& reply) {
    QueryGid command;
    command.port = port;
    command.index = index;
    return as_object(handle).execute(command, reply);
}

void fill_port(ibv_port_attr& attr, const QueryPortReply& reply, const DeviceLimits& limits) {
    attr = {};
    attr.state = static_cast<ibv_port_state>(reply.state);
    attr.max_mtu = static_cast<ibv_mtu>(reply.max_mtu);
    attr.active_mtu = static_cast<ibv_mtu>(reply.active_mtu);
    attr.gid_tbl_len = static_cast<int>(reply.gid_entries);
    const bool is_ethernet = reply.link_layer == IBV_LINK_LAYER_ETHERNET;
    const PortCaps caps = is_ethernet ? limits.port.ethernet_caps : limits.port.infiniband_caps;
    attr.port_cap_flags = static_cast<std::uint32_t>(caps.bits);
    attr.max_msg_sz = limits.port.max_message_bytes;
    attr.bad_pkey_cntr = reply.bad_pkey_count;
    attr.qkey_viol_cntr = reply.bad_qkey_count;
    attr.pkey_tbl_len = reply.pkey_entries;
    attr.lid = reply.lid;
    attr.sm_lid = reply.sm_lid;
    attr.lmc = reply.lmc;
    attr.max_vl_num = limits.port.max_vl_num;
    attr.sm_sl = reply.sm_sl;
    attr.subnet_timeout = is_ethernet ? 0 : limits.port.subnet_timeout;
    attr.active_width = static_cast<std::uint8_t>(reply.width);
    // XDR needs the newer member; the older one then says NDR.
    attr.active_speed = static_cast<std::uint8_t>(std::min(reply.speed, 128U));
    attr.phys_state = static_cast<std::uint8_t>(reply.physical_state);
    attr.link_layer = reply.link_layer;
    attr.flags = static_cast<std::uint8_t>(is_ethernet ? IBV_QPF_GRH_REQUIRED : 0);
}

}  // namespace

constexpr std::uint32_t qp_types(Services services) {
    std::uint32_t types = 0;
    for (const ServiceProperties& row : kServices) {
        types |= services.contains(row.service) ? 1U << row.ibv_qp_type : 0U;
    }
    return types;
}

void fill_on_demand_paging(const OnDemandPaging& odp, ibv_device_attr_ex& attr) {
    attr.odp_caps.general_caps =
        (odp.explicit_regions ? static_cast<unsigned>(IBV_ODP_SUPPORT) : 0U) |
        (odp.implicit_regions ? static_cast<unsigned>(IBV_ODP_SUPPORT_IMPLICIT) : 0U);
    attr.odp_caps.per_transport_caps.rc_odp_caps = odp.rc;
    attr.odp_caps.per_transport_caps.uc_odp_caps = odp.uc;
    attr.odp_caps.per_transport_caps.ud_odp_caps = odp.ud;
    attr.xrc_odp_caps = odp.xrc;
}

void fill_tag_matching(const TagMatchingLimits& limits, ibv_device_attr_ex& attr) {
    attr.tm_caps.max_rndv_hdr_size = limits.max_rendezvous_message_bytes;
    attr.tm_caps.max_num_tags = limits.max_tags;
    attr.tm_caps.flags =
        limits.services.contains(Service::kRc) ? static_cast<unsigned>(IBV_TM_CAP_RC) : 0U;
    attr.tm_caps.max_ops = limits.max_operations;
    attr.tm_caps.max_sge = limits.max_segments;
}

// A feature without a function behind it is reported as absent, whatever the device has.
void fill_extended(const DeviceLimits& limits, ibv_device_attr_ex& attr) {
    attr.completion_timestamp_mask = limits.completion_timestamp_mask;
    attr.hca_core_clock = limits.core_clock_khz;
    attr.cq_mod_caps.max_cq_count = limits.max_cq_moderation_count;
    attr.cq_mod_caps.max_cq_period = limits.max_cq_moderation_microseconds;
    attr.device_cap_flags_ex = (limits.caps & kModelledCaps).bits;
    attr.pci_atomic_caps = {limits.pci_atomic_sizes, limits.pci_atomic_sizes,
                            limits.pci_atomic_sizes};
    if (kModelledFeatures.on_demand_paging) {
        fill_on_demand_paging(limits.odp, attr);
    }
    if (kModelledFeatures.segmentation_offload) {
        attr.tso_caps = {limits.max_tso_bytes, qp_types(limits.tso_services)};
    }
    if (kModelledFeatures.receive_side_scaling) {
        attr.rss_caps = {qp_types(limits.rss_services), limits.max_rwq_indirection_tables,
                         limits.max_rwq_indirection_table_size, limits.rx_hash_fields,
                         limits.rx_hash_functions};
        attr.max_wq_type_rq = limits.max_wq_type_rq;
    }
    if (kModelledFeatures.packet_pacing) {
        attr.packet_pacing_caps = {limits.rate_limit_min_kbps, limits.rate_limit_max_kbps,
                                   qp_types(limits.rate_limit_services)};
    }
    if (kModelledFeatures.raw_packets) {
        attr.raw_packet_caps = limits.raw_packet_caps.bits;
    }
    fill_tag_matching(limits.tag_matching, attr);
    if (kModelledFeatures.device_memory) {
        attr.max_dm_size = limits.max_device_memory_bytes;
    }
}

// The client says how much of the structure it knows: 48, 52 or 56 bytes.
int query_port(ibv_context* handle, std::uint8_t port, ibv_port_attr* attr, std::size_t size) {
    Context& context = as_object(handle);
    QueryPort command;
    command.port = port;
    QueryPortReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        return error;
    }
    NewerPortAttr newer{};
    fill_port(newer.older, reply, context.personality().limits);
    newer.active_speed_ex = reply.speed;
    std::memcpy(attr, &newer, std::min(size, sizeof newer));
    return 0;
}

// The width and the speed of the link, whether or not the port is active: what Linux's sysfs states
// as its rate.
SIMVERBS_ABI int simverbs_abi_ibv_query_port_speed(ibv_context* handle, std::uint32_t port,
                                                   std::uint64_t* speed) {
    Context& context = as_object(handle);
    if (!context.personality().reports_port_speed) {
        return with_errno(EOPNOTSUPP);
    }
    QueryPort command;
    command.port = port;
    QueryPortReply reply;
    if (const int error = context.execute(command, reply); error != 0) {
        return error;
    }
    *speed = nominal_rate(static_cast<fabric::LinkWidth>(reply.width),
                          static_cast<fabric::LinkSpeed>(reply.speed));
    return 0;
}

int query_device_ex(ibv_context* handle, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attr, std::size_t size) {
    if (input != nullptr && input->comp_mask != 0) {
        return with_errno(EINVAL);
    }
    if (size < sizeof attr->orig_attr) {
        return with_errno(EINVAL);
    }
    const Context& context = as_object(handle);
    ibv_device_attr_ex full{};
    if (const int error = simverbs_abi_ibv_query_device(handle, &full.orig_attr); error != 0) {
        return error;
    }
    full.phys_port_cnt_ex = context.device().info().ports;
    fill_extended(context.personality().limits, full);
    std::memset(attr, 0, size);
    std::memcpy(attr, &full, std::min(size, sizeof full));
    return 0;
}

// The exported function writes the structure as it was before its last members came.
SIMVERBS_ABI int simverbs_abi_ibv_query_port(ibv_context* context, std::uint8_t port,
                                             _compat_ibv_port_attr* attr) {
    constexpr std::size_t kCompatBytes = 48;
    return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attr), kCompatBytes);
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid(ibv_context* handle, std::uint8_t port, int index,
                                            ibv_gid* gid) {
    QueryGidReply reply;
    if (const int error = query_gid(handle, port, static_cast<std::uint32_t>(index), reply);
        error != 0) {
        errno = error;
        return -1;
    }
    std::memcpy(gid->raw, reply.gid.data(), sizeof gid->raw);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_pkey(ibv_context* handle, std::uint8_t port, int index,
                                             __be16* pkey) {
    QueryPkey command;
    command.port = port;
    command.index = static_cast<std::uint32_t>(index);
    QueryPkeyReply reply;
    if (const int error = as_object(handle).execute(command, reply); error != 0) {
        errno = error == EINVAL ? ENOENT : error;  // rdma-core looks for a file of sysfs
        return -1;
    }
    *pkey = __builtin_bswap16(reply.pkey);
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_get_pkey_index(ibv_context* context, std::uint8_t port,
                                                 __be16 pkey) {
    __be16 entry = 0;
    for (int index = 0; simverbs_abi_ibv_query_pkey(context, port, index, &entry) == 0; ++index) {
        if (entry == pkey) {
            return index;
        }
    }
    errno = EINVAL;
    return -1;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid_type(ibv_context* context, std::uint8_t port,
                                                 unsigned int index, int* type) {
    QueryGidReply reply;
    if (const int error = query_gid(context, port, index, reply); error != 0) {
        errno = error;
        return -1;
    }
    *type = reply.type == IBV_GID_TYPE_ROCE_V2 ? kSysfsRoceV2 : kSysfsInfinibandOrRoceV1;
    return 0;
}

SIMVERBS_ABI int simverbs_abi_ibv_query_gid_ex(ibv_context* context, std::uint32_t port,
                                               std::uint32_t index, ibv_gid_entry* entry,
                                               std::uint32_t flags, std::size_t entry_size) {
    if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) {
        return with_errno(EINVAL);
    }
    QueryGidReply reply;
    if (query_gid(context, port, index, reply) != 0) {
        return with_errno(EINVAL);
    }
    ibv_gid_entry found{};
    std::memcpy(found.gid.raw, reply.gid.data(), sizeof found.gid.raw);
    if (found.gid.global.subnet_prefix == 0 && found.gid.global.interface_id == 0) {
        return with_errno(ENODATA);
    }
    found.gid_index = index;
    found.port_num = port;
    found.gid_type = reply.type;
    found.ndev_ifindex = reply.ndev;
    std::memset(entry, 0, entry_size);
    std::memcpy(entry, &found, sizeof found);
    return 0;
}

SIMVERBS_ABI ssize_t simverbs_abi_ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                                      std::size_t max_entries, std::uint32_t flags,
                                                      std::size_t entry_size) {
    if (flags != 0 || entry_size < sizeof(ibv_gid_entry)) {
        return -EINVAL;
    }
    const std::uint32_t ports = as_object(context).device().info().ports;
    const std::uint32_t length = as_object(context).personality().limits.port.gid_entries;
    std::size_t found = 0;
    for (std::uint32_t port = 1; port <= ports; ++port) {
        for (std::uint32_t index = 0; index < length; ++index) {
            alignas(ibv_gid_entry) char entry[sizeof(ibv_gid_entry)];
            auto* read = reinterpret_cast<ibv_gid_entry*>(entry);
            if (simverbs_abi_ibv_query_gid_ex(context, port, index, read, 0, sizeof entry) != 0) {
                continue;
            }
            if (found == max_entries) {
                errno = EINVAL;
                return -EINVAL;
            }
            auto* place = reinterpret_cast<std::byte*>(entries) + found * entry_size;
            std::memset(place, 0, entry_size);
            std::memcpy(place, read, sizeof entry);
            ++found;
        }
    }
    return static_cast<ssize_t>(found);
}

}  // namespace simverbs::abi
