#include "fabric/mad/field.hpp"

#include <array>

#include <gtest/gtest.h>

#include <infiniband/mad.h>

#include "fabric/mad/attributes.hpp"
#include "fabric/mad/datagram.hpp"

namespace fabric::mad {
namespace {

TEST(Field, CountsBitsFromTheMostSignificantOfTheFirstByte) {
    const std::array<std::uint8_t, 4> bytes{0x12, 0x34, 0x56, 0x78};
    EXPECT_EQ(get(bytes, {0, 4}), 0x1U);
    EXPECT_EQ(get(bytes, {4, 8}), 0x23U);
    EXPECT_EQ(get(bytes, {12, 20}), 0x45678U);
    EXPECT_EQ(get(bytes, {31, 1}), 0U);
    EXPECT_EQ(get(bytes, {28, 1}), 1U);
}

TEST(Field, SettingLeavesItsNeighboursAlone) {
    std::array<std::uint8_t, 3> bytes{0xFF, 0xFF, 0xFF};
    set(bytes, {6, 11}, 0);
    EXPECT_EQ(bytes, (std::array<std::uint8_t, 3>{0xFC, 0x00, 0x7F}));
    set(bytes, {7, 5}, 0x15);
    EXPECT_EQ(get(bytes, {7, 5}), 0x15U);
    EXPECT_EQ(get(bytes, {0, 6}), 0x3FU);
}

struct Oracle {
    Field ours;
    MAD_FIELDS theirs;
    std::size_t base;  // theirs count from here
};

// libibmad's table says of each field where it lies: what it writes we read, and the other way
// round.
void agree(const Oracle& row) {
    const std::uint64_t value =
        0x9E37'79B9'7F4A'7C15U & (row.ours.bits == 64 ? ~0ULL : (1ULL << row.ours.bits) - 1);
    std::array<std::uint8_t, kDatagramBytes> bytes{};
    if (row.ours.bits == 64) {
        mad_set_field64(bytes.data(), static_cast<int>(row.base), row.theirs, value);
    } else {
        mad_set_field(bytes.data(), static_cast<int>(row.base), row.theirs,
                      static_cast<std::uint32_t>(value));
    }
    const Bytes attribute = Bytes(bytes).subspan(row.base);
    EXPECT_EQ(get(attribute, row.ours), value) << mad_field_name(row.theirs);
    set(attribute, row.ours, 0);
    EXPECT_EQ(bytes, (std::array<std::uint8_t, kDatagramBytes>{})) << mad_field_name(row.theirs);
}

TEST(Field, HeadersLieWhereLibibmadHasThem) {
    const Oracle rows[] = {
        {header::kClass, IB_MAD_MGMTCLASS_F, 0},
        {header::kBaseVersion, IB_MAD_BASEVER_F, 0},
        {header::kClassVersion, IB_MAD_CLASSVER_F, 0},
        {header::kStatus, IB_MAD_STATUS_F, 0},
        {header::kTransactionId, IB_MAD_TRID_F, 0},
        {header::kAttributeId, IB_MAD_ATTRID_F, 0},
        {header::kAttributeModifier, IB_MAD_ATTRMOD_F, 0},
        {smp::kHopCount, IB_DRSMP_HOPCNT_F, 0},
        {smp::kHopPointer, IB_DRSMP_HOPPTR_F, 0},
        {smp::kStatus, IB_DRSMP_STATUS_F, 0},
        {smp::kDirection, IB_DRSMP_DIRECTION_F, 0},
        {smp::kMkey, IB_MAD_MKEY_F, 0},
        {smp::kDrDlid, IB_DRSMP_DRDLID_F, 0},
        {smp::kDrSlid, IB_DRSMP_DRSLID_F, 0},
        {sa::kSmKey, IB_SA_MKEY_F, 0},
        {sa::kAttributeOffset, IB_SA_ATTROFFS_F, 0},
        {sa::kComponentMask, IB_SA_COMPMASK_F, 0},
        {rmpp::kVersion, IB_SA_RMPP_VERS_F, 0},
        {rmpp::kType, IB_SA_RMPP_TYPE_F, 0},
        {rmpp::kResponseTime, IB_SA_RMPP_RESP_F, 0},
        {rmpp::kStatus, IB_SA_RMPP_STATUS_F, 0},
        {rmpp::kSegmentNumber, IB_SA_RMPP_D1_F, 0},
        {rmpp::kPayloadLength, IB_SA_RMPP_D2_F, 0},
    };
    for (const Oracle& row : rows) {
        agree(row);
    }
}

TEST(Field, PortInfoLiesWhereLibibmadHasIt) {
    namespace p = port_info;
    const std::size_t base = smp::kDataOffset;
    const Oracle rows[] = {
        {p::kMkey, IB_PORT_MKEY_F, base},
        {p::kGidPrefix, IB_PORT_GID_PREFIX_F, base},
        {p::kLid, IB_PORT_LID_F, base},
        {p::kSmLid, IB_PORT_SMLID_F, base},
        {p::kCapabilityMask, IB_PORT_CAPMASK_F, base},
        {p::kDiagCode, IB_PORT_DIAG_F, base},
        {p::kMkeyLease, IB_PORT_MKEY_LEASE_F, base},
        {p::kLocalPort, IB_PORT_LOCAL_PORT_F, base},
        {p::kWidthEnabled, IB_PORT_LINK_WIDTH_ENABLED_F, base},
        {p::kWidthSupported, IB_PORT_LINK_WIDTH_SUPPORTED_F, base},
        {p::kWidthActive, IB_PORT_LINK_WIDTH_ACTIVE_F, base},
        {p::kSpeedSupported, IB_PORT_LINK_SPEED_SUPPORTED_F, base},
        {p::kState, IB_PORT_STATE_F, base},
        {p::kPhysicalState, IB_PORT_PHYS_STATE_F, base},
        {p::kDownDefault, IB_PORT_LINK_DOWN_DEF_F, base},
        {p::kMkeyProtection, IB_PORT_MKEY_PROT_BITS_F, base},
        {p::kLmc, IB_PORT_LMC_F, base},
        {p::kSpeedActive, IB_PORT_LINK_SPEED_ACTIVE_F, base},
        {p::kSpeedEnabled, IB_PORT_LINK_SPEED_ENABLED_F, base},
        {p::kNeighborMtu, IB_PORT_NEIGHBOR_MTU_F, base},
        {p::kSmSl, IB_PORT_SMSL_F, base},
        {p::kVlCap, IB_PORT_VL_CAP_F, base},
        {p::kInitType, IB_PORT_INIT_TYPE_F, base},
        {p::kVlHighLimit, IB_PORT_VL_HIGH_LIMIT_F, base},
        {p::kVlArbitrationHighCap, IB_PORT_VL_ARBITRATION_HIGH_CAP_F, base},
        {p::kVlArbitrationLowCap, IB_PORT_VL_ARBITRATION_LOW_CAP_F, base},
        {p::kInitTypeReply, IB_PORT_INIT_TYPE_REPLY_F, base},
        {p::kMtuCap, IB_PORT_MTU_CAP_F, base},
        {p::kOperationalVls, IB_PORT_OPER_VLS_F, base},
        {p::kMkeyViolations, IB_PORT_MKEY_VIOL_F, base},
        {p::kPkeyViolations, IB_PORT_PKEY_VIOL_F, base},
        {p::kQkeyViolations, IB_PORT_QKEY_VIOL_F, base},
        {p::kGuidCap, IB_PORT_GUID_CAP_F, base},
        {p::kClientReregister, IB_PORT_CLIENT_REREG_F, base},
        {p::kSubnetTimeout, IB_PORT_SUBN_TIMEOUT_F, base},
        {p::kResponseTime, IB_PORT_RESP_TIME_VAL_F, base},
        {p::kMaxCreditHint, IB_PORT_MAX_CREDIT_HINT_F, base},
        {p::kRoundTripLatency, IB_PORT_LINK_ROUND_TRIP_F, base},
        {p::kCapabilityMask2, IB_PORT_CAPMASK2_F, base},
        {p::kExtendedSpeedActive, IB_PORT_LINK_SPEED_EXT_ACTIVE_F, base},
        {p::kExtendedSpeedSupported, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F, base},
        {p::kExtendedSpeedEnabled, IB_PORT_LINK_SPEED_EXT_ENABLED_F, base},
    };
    for (const Oracle& row : rows) {
        agree(row);
    }
}

TEST(Field, NodesSwitchesAndNoticesLieWhereLibibmadHasThem) {
    const std::size_t base = smp::kDataOffset;
    const Oracle rows[] = {
        {node_info::kBaseVersion, IB_NODE_BASE_VERS_F, base},
        {node_info::kClassVersion, IB_NODE_CLASS_VERS_F, base},
        {node_info::kNodeType, IB_NODE_TYPE_F, base},
        {node_info::kPortCount, IB_NODE_NPORTS_F, base},
        {node_info::kSystemImageGuid, IB_NODE_SYSTEM_GUID_F, base},
        {node_info::kNodeGuid, IB_NODE_GUID_F, base},
        {node_info::kPortGuid, IB_NODE_PORT_GUID_F, base},
        {node_info::kPartitionCap, IB_NODE_PARTITION_CAP_F, base},
        {node_info::kDeviceId, IB_NODE_DEVID_F, base},
        {node_info::kRevision, IB_NODE_REVISION_F, base},
        {node_info::kLocalPort, IB_NODE_LOCAL_PORT_F, base},
        {node_info::kVendorId, IB_NODE_VENDORID_F, base},
        {switch_info::kLinearTableCap, IB_SW_LINEAR_FDB_CAP_F, base},
        {switch_info::kMulticastTableCap, IB_SW_MCAST_FDB_CAP_F, base},
        {switch_info::kLinearTableTop, IB_SW_LINEAR_FDB_TOP_F, base},
        {switch_info::kDefaultPort, IB_SW_DEF_PORT_F, base},
        {switch_info::kDefaultMulticastPrimaryPort, IB_SW_DEF_MCAST_PRIM_F, base},
        {switch_info::kDefaultMulticastOtherPort, IB_SW_DEF_MCAST_NOT_PRIM_F, base},
        {switch_info::kLifetime, IB_SW_LIFE_TIME_F, base},
        {switch_info::kPortStateChange, IB_SW_STATE_CHANGE_F, base},
        {switch_info::kPartitionEnforcementCap, IB_SW_PARTITION_ENFORCE_CAP_F, base},
        {switch_info::kInboundEnforcement, IB_SW_PARTITION_ENF_INB_F, base},
        {switch_info::kOutboundEnforcement, IB_SW_PARTITION_ENF_OUTB_F, base},
        {switch_info::kEnhancedPort0, IB_SW_ENHANCED_PORT0_F, base},
        {switch_info::kMulticastTableTop, IB_SW_MCAST_FDB_TOP_F, base},
        {sm_info::kGuid, IB_SMINFO_GUID_F, base},
        {sm_info::kKey, IB_SMINFO_KEY_F, base},
        {sm_info::kActivityCount, IB_SMINFO_ACT_F, base},
        {sm_info::kPriority, IB_SMINFO_PRIO_F, base},
        {sm_info::kState, IB_SMINFO_STATE_F, base},
        {notice::kIsGeneric, IB_NOTICE_IS_GENERIC_F, base},
        {notice::kType, IB_NOTICE_TYPE_F, base},
        {notice::kProducerType, IB_NOTICE_PRODUCER_F, base},
        {notice::kTrapNumber, IB_NOTICE_TRAP_NUMBER_F, base},
        {notice::kIssuerLid, IB_NOTICE_ISSUER_LID_F, base},
        {notice::kToggle, IB_NOTICE_TOGGLE_F, base},
        {notice::kCount, IB_NOTICE_COUNT_F, base},
        {notice::kLinkStateLid, IB_NOTICE_DATA_LID_F, base},
        {notice::kLocalChangeLid, IB_NOTICE_DATA_144_LID_F, base},
        {notice::kLocalChangeCapabilities, IB_NOTICE_DATA_144_CAPMASK_F, base},
        {class_port_info::kCapabilityMask, IB_CPI_CAPMASK_F, base},
        {class_port_info::kCapabilityMask2, IB_CPI_CAPMASK2_F, base},
        {class_port_info::kResponseTime, IB_CPI_RESP_TIME_VALUE_F, base},
        {class_port_info::kTrapLid, IB_CPI_TRAP_LID_F, base},
        {class_port_info::kTrapPkey, IB_CPI_TRAP_PKEY_F, base},
    };
    for (const Oracle& row : rows) {
        agree(row);
    }
}

}  // namespace
}  // namespace fabric::mad
