// The numbers of the model against those of the verbs header. What the installed header does not
// have yet (FLUSH, DEVICE_SPEED_CHANGE) is compared with the figure that rdma-core gave it later.
#include <gtest/gtest.h>

#include <infiniband/verbs.h>

#include "fabric/net/link_layer.hpp"
#include "fabric/net/mtu.hpp"
#include "fabric/net/port_transitions.hpp"

#include "simverbs/model/access.hpp"
#include "simverbs/model/frame_offloads.hpp"
#include "simverbs/model/limits.hpp"
#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/port_caps.hpp"
#include "simverbs/model/qp_transitions.hpp"
#include "simverbs/model/receive_hash.hpp"
#include "simverbs/model/services.hpp"
#include "simverbs/model/statuses.hpp"
#include "simverbs/model/wq_transitions.hpp"

namespace simverbs {
namespace {

template <typename E, typename C>
constexpr bool same(E ours, C theirs) {
    return static_cast<std::uint64_t>(ours) == static_cast<std::uint64_t>(theirs);
}

TEST(Numbers, QpStatesAndTypesAreThoseOfTheHeader) {
    EXPECT_TRUE(same(QpState::kReset, IBV_QPS_RESET));
    EXPECT_TRUE(same(QpState::kInit, IBV_QPS_INIT));
    EXPECT_TRUE(same(QpState::kRtr, IBV_QPS_RTR));
    EXPECT_TRUE(same(QpState::kRts, IBV_QPS_RTS));
    EXPECT_TRUE(same(QpState::kSqd, IBV_QPS_SQD));
    EXPECT_TRUE(same(QpState::kSqe, IBV_QPS_SQE));
    EXPECT_TRUE(same(QpState::kErr, IBV_QPS_ERR));

    EXPECT_EQ(properties(Service::kRc).ibv_qp_type, IBV_QPT_RC);
    EXPECT_EQ(properties(Service::kUc).ibv_qp_type, IBV_QPT_UC);
    EXPECT_EQ(properties(Service::kUd).ibv_qp_type, IBV_QPT_UD);
    EXPECT_EQ(properties(Service::kRawPacket).ibv_qp_type, IBV_QPT_RAW_PACKET);
    EXPECT_EQ(properties(Service::kXrcIni).ibv_qp_type, IBV_QPT_XRC_SEND);
    EXPECT_EQ(properties(Service::kXrcTgt).ibv_qp_type, IBV_QPT_XRC_RECV);
    EXPECT_EQ(find_service(IBV_QPT_DRIVER), nullptr);
}

TEST(Numbers, QpAttributeBitsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(QpAttr::kState, IBV_QP_STATE));
    EXPECT_TRUE(same(QpAttr::kCurState, IBV_QP_CUR_STATE));
    EXPECT_TRUE(same(QpAttr::kEnSqdAsyncNotify, IBV_QP_EN_SQD_ASYNC_NOTIFY));
    EXPECT_TRUE(same(QpAttr::kAccessFlags, IBV_QP_ACCESS_FLAGS));
    EXPECT_TRUE(same(QpAttr::kPkeyIndex, IBV_QP_PKEY_INDEX));
    EXPECT_TRUE(same(QpAttr::kPort, IBV_QP_PORT));
    EXPECT_TRUE(same(QpAttr::kQkey, IBV_QP_QKEY));
    EXPECT_TRUE(same(QpAttr::kAv, IBV_QP_AV));
    EXPECT_TRUE(same(QpAttr::kPathMtu, IBV_QP_PATH_MTU));
    EXPECT_TRUE(same(QpAttr::kTimeout, IBV_QP_TIMEOUT));
    EXPECT_TRUE(same(QpAttr::kRetryCnt, IBV_QP_RETRY_CNT));
    EXPECT_TRUE(same(QpAttr::kRnrRetry, IBV_QP_RNR_RETRY));
    EXPECT_TRUE(same(QpAttr::kRqPsn, IBV_QP_RQ_PSN));
    EXPECT_TRUE(same(QpAttr::kMaxRdAtomic, IBV_QP_MAX_QP_RD_ATOMIC));
    EXPECT_TRUE(same(QpAttr::kAltPath, IBV_QP_ALT_PATH));
    EXPECT_TRUE(same(QpAttr::kMinRnrTimer, IBV_QP_MIN_RNR_TIMER));
    EXPECT_TRUE(same(QpAttr::kSqPsn, IBV_QP_SQ_PSN));
    EXPECT_TRUE(same(QpAttr::kMaxDestRdAtomic, IBV_QP_MAX_DEST_RD_ATOMIC));
    EXPECT_TRUE(same(QpAttr::kPathMigState, IBV_QP_PATH_MIG_STATE));
    EXPECT_TRUE(same(QpAttr::kCap, IBV_QP_CAP));
    EXPECT_TRUE(same(QpAttr::kDestQpn, IBV_QP_DEST_QPN));
    EXPECT_TRUE(same(QpAttr::kRateLimit, IBV_QP_RATE_LIMIT));
    EXPECT_EQ(kQpAttrNames.size(), 22U);
}

TEST(Numbers, WorkQueuesAndHashesAreThoseOfTheHeader) {
    EXPECT_TRUE(same(WqState::kReset, IBV_WQS_RESET));
    EXPECT_TRUE(same(WqState::kReady, IBV_WQS_RDY));
    EXPECT_TRUE(same(WqState::kErr, IBV_WQS_ERR));
    EXPECT_TRUE(same(WqAttr::kState, IBV_WQ_ATTR_STATE));
    EXPECT_TRUE(same(WqAttr::kCurState, IBV_WQ_ATTR_CURR_STATE));
    EXPECT_TRUE(same(WqAttr::kFlags, IBV_WQ_ATTR_FLAGS));
    EXPECT_TRUE(same(FrameOffload::kCvlanStripping, IBV_WQ_FLAGS_CVLAN_STRIPPING));
    EXPECT_TRUE(same(FrameOffload::kScatterFcs, IBV_WQ_FLAGS_SCATTER_FCS));
    EXPECT_TRUE(same(FrameOffload::kDelayDrop, IBV_WQ_FLAGS_DELAY_DROP));
    EXPECT_TRUE(same(FrameOffload::kPciWriteEndPadding, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING));
    EXPECT_EQ(kKnownFrameOffloads.bits, static_cast<std::uint32_t>(IBV_WQ_FLAGS_RESERVED) - 1);
    EXPECT_TRUE(same(RawPacketCap::kCvlanStripping, IBV_RAW_PACKET_CAP_CVLAN_STRIPPING));
    EXPECT_TRUE(same(RawPacketCap::kScatterFcs, IBV_RAW_PACKET_CAP_SCATTER_FCS));
    EXPECT_TRUE(same(RawPacketCap::kIpCsum, IBV_RAW_PACKET_CAP_IP_CSUM));
    EXPECT_TRUE(same(RawPacketCap::kDelayDrop, IBV_RAW_PACKET_CAP_DELAY_DROP));
    EXPECT_EQ(static_cast<std::uint64_t>(DeviceCap::kRawScatterFcs), IBV_DEVICE_RAW_SCATTER_FCS);
    EXPECT_EQ(static_cast<std::uint64_t>(DeviceCap::kPciWriteEndPadding),
              IBV_DEVICE_PCI_WRITE_END_PADDING);
    EXPECT_TRUE(same(kToeplitzHash, IBV_RX_HASH_FUNC_TOEPLITZ));
    EXPECT_TRUE(same(HashField::kIpv4Source, IBV_RX_HASH_SRC_IPV4));
    EXPECT_TRUE(same(HashField::kIpv4Destination, IBV_RX_HASH_DST_IPV4));
    EXPECT_TRUE(same(HashField::kIpv6Source, IBV_RX_HASH_SRC_IPV6));
    EXPECT_TRUE(same(HashField::kIpv6Destination, IBV_RX_HASH_DST_IPV6));
    EXPECT_TRUE(same(HashField::kTcpSourcePort, IBV_RX_HASH_SRC_PORT_TCP));
    EXPECT_TRUE(same(HashField::kTcpDestinationPort, IBV_RX_HASH_DST_PORT_TCP));
    EXPECT_TRUE(same(HashField::kUdpSourcePort, IBV_RX_HASH_SRC_PORT_UDP));
    EXPECT_TRUE(same(HashField::kUdpDestinationPort, IBV_RX_HASH_DST_PORT_UDP));
}

TEST(Numbers, StatusesAreThoseOfTheHeader) {
    EXPECT_TRUE(same(WcStatus::kSuccess, IBV_WC_SUCCESS));
    EXPECT_TRUE(same(WcStatus::kLocLenErr, IBV_WC_LOC_LEN_ERR));
    EXPECT_TRUE(same(WcStatus::kLocQpOpErr, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_TRUE(same(WcStatus::kLocEecOpErr, IBV_WC_LOC_EEC_OP_ERR));
    EXPECT_TRUE(same(WcStatus::kLocProtErr, IBV_WC_LOC_PROT_ERR));
    EXPECT_TRUE(same(WcStatus::kWrFlushErr, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(same(WcStatus::kMwBindErr, IBV_WC_MW_BIND_ERR));
    EXPECT_TRUE(same(WcStatus::kBadRespErr, IBV_WC_BAD_RESP_ERR));
    EXPECT_TRUE(same(WcStatus::kLocAccessErr, IBV_WC_LOC_ACCESS_ERR));
    EXPECT_TRUE(same(WcStatus::kRemInvReqErr, IBV_WC_REM_INV_REQ_ERR));
    EXPECT_TRUE(same(WcStatus::kRemAccessErr, IBV_WC_REM_ACCESS_ERR));
    EXPECT_TRUE(same(WcStatus::kRemOpErr, IBV_WC_REM_OP_ERR));
    EXPECT_TRUE(same(WcStatus::kRetryExcErr, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(same(WcStatus::kRnrRetryExcErr, IBV_WC_RNR_RETRY_EXC_ERR));
    EXPECT_TRUE(same(WcStatus::kLocRddViolErr, IBV_WC_LOC_RDD_VIOL_ERR));
    EXPECT_TRUE(same(WcStatus::kRemInvRdReqErr, IBV_WC_REM_INV_RD_REQ_ERR));
    EXPECT_TRUE(same(WcStatus::kRemAbortErr, IBV_WC_REM_ABORT_ERR));
    EXPECT_TRUE(same(WcStatus::kInvEecnErr, IBV_WC_INV_EECN_ERR));
    EXPECT_TRUE(same(WcStatus::kInvEecStateErr, IBV_WC_INV_EEC_STATE_ERR));
    EXPECT_TRUE(same(WcStatus::kFatalErr, IBV_WC_FATAL_ERR));
    EXPECT_TRUE(same(WcStatus::kRespTimeoutErr, IBV_WC_RESP_TIMEOUT_ERR));
    EXPECT_TRUE(same(WcStatus::kGeneralErr, IBV_WC_GENERAL_ERR));
    EXPECT_TRUE(same(WcStatus::kTmErr, IBV_WC_TM_ERR));
    EXPECT_TRUE(same(WcStatus::kTmRndvIncomplete, IBV_WC_TM_RNDV_INCOMPLETE));
}

TEST(Numbers, EventsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(AsyncEvent::kCqErr, IBV_EVENT_CQ_ERR));
    EXPECT_TRUE(same(AsyncEvent::kQpFatal, IBV_EVENT_QP_FATAL));
    EXPECT_TRUE(same(AsyncEvent::kQpReqErr, IBV_EVENT_QP_REQ_ERR));
    EXPECT_TRUE(same(AsyncEvent::kQpAccessErr, IBV_EVENT_QP_ACCESS_ERR));
    EXPECT_TRUE(same(AsyncEvent::kCommEst, IBV_EVENT_COMM_EST));
    EXPECT_TRUE(same(AsyncEvent::kSqDrained, IBV_EVENT_SQ_DRAINED));
    EXPECT_TRUE(same(AsyncEvent::kPathMig, IBV_EVENT_PATH_MIG));
    EXPECT_TRUE(same(AsyncEvent::kPathMigErr, IBV_EVENT_PATH_MIG_ERR));
    EXPECT_TRUE(same(AsyncEvent::kDeviceFatal, IBV_EVENT_DEVICE_FATAL));
    EXPECT_TRUE(same(AsyncEvent::kPortActive, IBV_EVENT_PORT_ACTIVE));
    EXPECT_TRUE(same(AsyncEvent::kPortErr, IBV_EVENT_PORT_ERR));
    EXPECT_TRUE(same(AsyncEvent::kLidChange, IBV_EVENT_LID_CHANGE));
    EXPECT_TRUE(same(AsyncEvent::kPkeyChange, IBV_EVENT_PKEY_CHANGE));
    EXPECT_TRUE(same(AsyncEvent::kSmChange, IBV_EVENT_SM_CHANGE));
    EXPECT_TRUE(same(AsyncEvent::kSrqErr, IBV_EVENT_SRQ_ERR));
    EXPECT_TRUE(same(AsyncEvent::kSrqLimitReached, IBV_EVENT_SRQ_LIMIT_REACHED));
    EXPECT_TRUE(same(AsyncEvent::kQpLastWqeReached, IBV_EVENT_QP_LAST_WQE_REACHED));
    EXPECT_TRUE(same(AsyncEvent::kClientReregister, IBV_EVENT_CLIENT_REREGISTER));
    EXPECT_TRUE(same(AsyncEvent::kGidChange, IBV_EVENT_GID_CHANGE));
    EXPECT_TRUE(same(AsyncEvent::kWqFatal, IBV_EVENT_WQ_FATAL));
    EXPECT_TRUE(same(AsyncEvent::kDeviceSpeedChange, 20));
    for (std::size_t i = 0; i < kAsyncEvents.size(); ++i) {
        EXPECT_EQ(static_cast<std::size_t>(kAsyncEvents[i].event), i);
    }
}

TEST(Numbers, WorkRequestOpcodesAndFlagsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(WrOpcode::kRdmaWrite, IBV_WR_RDMA_WRITE));
    EXPECT_TRUE(same(WrOpcode::kRdmaWriteWithImm, IBV_WR_RDMA_WRITE_WITH_IMM));
    EXPECT_TRUE(same(WrOpcode::kSend, IBV_WR_SEND));
    EXPECT_TRUE(same(WrOpcode::kSendWithImm, IBV_WR_SEND_WITH_IMM));
    EXPECT_TRUE(same(WrOpcode::kRdmaRead, IBV_WR_RDMA_READ));
    EXPECT_TRUE(same(WrOpcode::kAtomicCmpAndSwp, IBV_WR_ATOMIC_CMP_AND_SWP));
    EXPECT_TRUE(same(WrOpcode::kAtomicFetchAndAdd, IBV_WR_ATOMIC_FETCH_AND_ADD));
    EXPECT_TRUE(same(WrOpcode::kLocalInv, IBV_WR_LOCAL_INV));
    EXPECT_TRUE(same(WrOpcode::kBindMw, IBV_WR_BIND_MW));
    EXPECT_TRUE(same(WrOpcode::kSendWithInv, IBV_WR_SEND_WITH_INV));
    EXPECT_TRUE(same(WrOpcode::kTso, IBV_WR_TSO));
    EXPECT_TRUE(same(WrOpcode::kDriver1, IBV_WR_DRIVER1));
    EXPECT_TRUE(same(WrOpcode::kFlush, 14));
    EXPECT_TRUE(same(WrOpcode::kAtomicWrite, IBV_WR_ATOMIC_WRITE));

    EXPECT_TRUE(same(SendFlag::kFence, IBV_SEND_FENCE));
    EXPECT_TRUE(same(SendFlag::kSignaled, IBV_SEND_SIGNALED));
    EXPECT_TRUE(same(SendFlag::kSolicited, IBV_SEND_SOLICITED));
    EXPECT_TRUE(same(SendFlag::kInline, IBV_SEND_INLINE));
    EXPECT_TRUE(same(SendFlag::kIpCsum, IBV_SEND_IP_CSUM));
}

TEST(Numbers, CompletionOpcodesAndFlagsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(WcOpcode::kSend, IBV_WC_SEND));
    EXPECT_TRUE(same(WcOpcode::kRdmaWrite, IBV_WC_RDMA_WRITE));
    EXPECT_TRUE(same(WcOpcode::kRdmaRead, IBV_WC_RDMA_READ));
    EXPECT_TRUE(same(WcOpcode::kCompSwap, IBV_WC_COMP_SWAP));
    EXPECT_TRUE(same(WcOpcode::kFetchAdd, IBV_WC_FETCH_ADD));
    EXPECT_TRUE(same(WcOpcode::kBindMw, IBV_WC_BIND_MW));
    EXPECT_TRUE(same(WcOpcode::kLocalInv, IBV_WC_LOCAL_INV));
    EXPECT_TRUE(same(WcOpcode::kTso, IBV_WC_TSO));
    EXPECT_TRUE(same(WcOpcode::kFlush, 8));
    EXPECT_TRUE(same(WcOpcode::kAtomicWrite, IBV_WC_ATOMIC_WRITE));
    EXPECT_TRUE(same(WcOpcode::kRecv, IBV_WC_RECV));
    EXPECT_TRUE(same(WcOpcode::kRecvRdmaWithImm, IBV_WC_RECV_RDMA_WITH_IMM));
    EXPECT_TRUE(same(WcOpcode::kTmAdd, IBV_WC_TM_ADD));
    EXPECT_TRUE(same(WcOpcode::kTmNoTag, IBV_WC_TM_NO_TAG));
    EXPECT_TRUE(same(WcOpcode::kDriver1, IBV_WC_DRIVER1));
    EXPECT_TRUE(same(WcOpcode::kDriver3, IBV_WC_DRIVER3));

    EXPECT_TRUE(same(WcFlag::kGrh, IBV_WC_GRH));
    EXPECT_TRUE(same(WcFlag::kWithImm, IBV_WC_WITH_IMM));
    EXPECT_TRUE(same(WcFlag::kIpCsumOk, IBV_WC_IP_CSUM_OK));
    EXPECT_TRUE(same(WcFlag::kWithInv, IBV_WC_WITH_INV));
    EXPECT_TRUE(same(WcFlag::kTmSyncReq, IBV_WC_TM_SYNC_REQ));
    EXPECT_TRUE(same(WcFlag::kTmMatch, IBV_WC_TM_MATCH));
    EXPECT_TRUE(same(WcFlag::kTmDataValid, IBV_WC_TM_DATA_VALID));
}

TEST(Numbers, AccessRightsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(Access::kLocalWrite, IBV_ACCESS_LOCAL_WRITE));
    EXPECT_TRUE(same(Access::kRemoteWrite, IBV_ACCESS_REMOTE_WRITE));
    EXPECT_TRUE(same(Access::kRemoteRead, IBV_ACCESS_REMOTE_READ));
    EXPECT_TRUE(same(Access::kRemoteAtomic, IBV_ACCESS_REMOTE_ATOMIC));
    EXPECT_TRUE(same(Access::kMwBind, IBV_ACCESS_MW_BIND));
    EXPECT_TRUE(same(Access::kZeroBased, IBV_ACCESS_ZERO_BASED));
    EXPECT_TRUE(same(Access::kOnDemand, IBV_ACCESS_ON_DEMAND));
    EXPECT_TRUE(same(Access::kHugeTlb, IBV_ACCESS_HUGETLB));
    EXPECT_TRUE(same(Access::kRelaxedOrdering, IBV_ACCESS_RELAXED_ORDERING));
    EXPECT_TRUE(same(Access::kFlushGlobal, 1 << 8));
    EXPECT_TRUE(same(Access::kFlushPersistent, 1 << 9));
}

TEST(Numbers, DeviceCapabilitiesAreThoseOfTheHeader) {
    EXPECT_TRUE(same(DeviceCap::kResizeMaxWr, IBV_DEVICE_RESIZE_MAX_WR));
    EXPECT_TRUE(same(DeviceCap::kBadPkeyCntr, IBV_DEVICE_BAD_PKEY_CNTR));
    EXPECT_TRUE(same(DeviceCap::kBadQkeyCntr, IBV_DEVICE_BAD_QKEY_CNTR));
    EXPECT_TRUE(same(DeviceCap::kRawMulti, IBV_DEVICE_RAW_MULTI));
    EXPECT_TRUE(same(DeviceCap::kAutoPathMig, IBV_DEVICE_AUTO_PATH_MIG));
    EXPECT_TRUE(same(DeviceCap::kChangePhyPort, IBV_DEVICE_CHANGE_PHY_PORT));
    EXPECT_TRUE(same(DeviceCap::kUdAvPortEnforce, IBV_DEVICE_UD_AV_PORT_ENFORCE));
    EXPECT_TRUE(same(DeviceCap::kCurrQpStateMod, IBV_DEVICE_CURR_QP_STATE_MOD));
    EXPECT_TRUE(same(DeviceCap::kShutdownPort, IBV_DEVICE_SHUTDOWN_PORT));
    EXPECT_TRUE(same(DeviceCap::kInitType, IBV_DEVICE_INIT_TYPE));
    EXPECT_TRUE(same(DeviceCap::kPortActiveEvent, IBV_DEVICE_PORT_ACTIVE_EVENT));
    EXPECT_TRUE(same(DeviceCap::kSysImageGuid, IBV_DEVICE_SYS_IMAGE_GUID));
    EXPECT_TRUE(same(DeviceCap::kRcRnrNakGen, IBV_DEVICE_RC_RNR_NAK_GEN));
    EXPECT_TRUE(same(DeviceCap::kSrqResize, IBV_DEVICE_SRQ_RESIZE));
    EXPECT_TRUE(same(DeviceCap::kNNotifyCq, IBV_DEVICE_N_NOTIFY_CQ));
    EXPECT_TRUE(same(DeviceCap::kMemWindow, IBV_DEVICE_MEM_WINDOW));
    EXPECT_TRUE(same(DeviceCap::kUdIpCsum, IBV_DEVICE_UD_IP_CSUM));
    EXPECT_TRUE(same(DeviceCap::kXrc, IBV_DEVICE_XRC));
    EXPECT_TRUE(same(DeviceCap::kMemMgtExtensions, IBV_DEVICE_MEM_MGT_EXTENSIONS));
    EXPECT_TRUE(same(DeviceCap::kMemWindowType2A, IBV_DEVICE_MEM_WINDOW_TYPE_2A));
    EXPECT_TRUE(same(DeviceCap::kMemWindowType2B, IBV_DEVICE_MEM_WINDOW_TYPE_2B));
    EXPECT_TRUE(same(DeviceCap::kRcIpCsum, IBV_DEVICE_RC_IP_CSUM));
    EXPECT_TRUE(same(DeviceCap::kRawIpCsum, IBV_DEVICE_RAW_IP_CSUM));
    EXPECT_TRUE(same(DeviceCap::kManagedFlowSteering, IBV_DEVICE_MANAGED_FLOW_STEERING));
    EXPECT_TRUE(same(AtomicScope::kNone, IBV_ATOMIC_NONE));
    EXPECT_TRUE(same(AtomicScope::kHca, IBV_ATOMIC_HCA));
    EXPECT_TRUE(same(AtomicScope::kGlobal, IBV_ATOMIC_GLOB));
}

TEST(Numbers, PortEnumerationsAreThoseOfTheHeader) {
    EXPECT_TRUE(same(fabric::LinkLayer::kInfiniband, IBV_LINK_LAYER_INFINIBAND));
    EXPECT_TRUE(same(fabric::LinkLayer::kEthernet, IBV_LINK_LAYER_ETHERNET));
    EXPECT_TRUE(same(fabric::PortState::kDown, IBV_PORT_DOWN));
    EXPECT_TRUE(same(fabric::PortState::kInit, IBV_PORT_INIT));
    EXPECT_TRUE(same(fabric::PortState::kArmed, IBV_PORT_ARMED));
    EXPECT_TRUE(same(fabric::PortState::kActive, IBV_PORT_ACTIVE));
    EXPECT_TRUE(same(fabric::Mtu::k256, IBV_MTU_256));
    EXPECT_TRUE(same(fabric::Mtu::k512, IBV_MTU_512));
    EXPECT_TRUE(same(fabric::Mtu::k1024, IBV_MTU_1024));
    EXPECT_TRUE(same(fabric::Mtu::k2048, IBV_MTU_2048));
    EXPECT_TRUE(same(fabric::Mtu::k4096, IBV_MTU_4096));
    EXPECT_TRUE(same(PortCap::kSm, IBV_PORT_SM));
    EXPECT_TRUE(same(PortCap::kNoticeSup, IBV_PORT_NOTICE_SUP));
    EXPECT_TRUE(same(PortCap::kTrapSup, IBV_PORT_TRAP_SUP));
    EXPECT_TRUE(same(PortCap::kAutoMigrSup, IBV_PORT_AUTO_MIGR_SUP));
    EXPECT_TRUE(same(PortCap::kSlMapSup, IBV_PORT_SL_MAP_SUP));
    EXPECT_TRUE(same(PortCap::kSysImageGuidSup, IBV_PORT_SYS_IMAGE_GUID_SUP));
    EXPECT_TRUE(same(PortCap::kExtendedSpeedsSup, IBV_PORT_EXTENDED_SPEEDS_SUP));
    EXPECT_TRUE(same(PortCap::kCapMask2Sup, IBV_PORT_CAP_MASK2_SUP));
    EXPECT_TRUE(same(PortCap::kCmSup, IBV_PORT_CM_SUP));
    EXPECT_TRUE(same(PortCap::kClientRegSup, IBV_PORT_CLIENT_REG_SUP));
    EXPECT_TRUE(same(PortCap::kIpBasedGids, IBV_PORT_IP_BASED_GIDS));
}

}  // namespace
}  // namespace simverbs
