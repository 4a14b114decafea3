#include "fabric/net/gid.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(Guid, IsLocallyAdministeredAndUnlikeAnyOther) {
    const Guid guid = make_guid(NodeId{0}, PortNumber{1});
    EXPECT_EQ(guid.value(), 0x0253'5600'0000'1001U);
    EXPECT_NE(guid.value() >> 56 & 2U, 0U);
    EXPECT_NE(guid, make_guid(NodeId{1}, PortNumber{1}));
    EXPECT_NE(guid, make_guid(NodeId{0}, PortNumber{2}));
}

TEST(Gid, IsPrefixAndGuid) {
    const Gid gid = make_gid(kDefaultSubnetPrefix, make_guid(NodeId{0}, PortNumber{1}));
    EXPECT_EQ(gid.subnet_prefix(), kDefaultSubnetPrefix);
    EXPECT_EQ(gid.interface_id(), 0x0253'5600'0000'1001U);
    EXPECT_EQ(gid.bytes[0], 0xFE);
    EXPECT_EQ(gid.bytes[15], 0x01);
}

TEST(Gid, PrintsAsAnIpv6Address) {
    EXPECT_EQ(to_string(make_gid(kDefaultSubnetPrefix, Guid{0x0253'5600'0000'1001U})),
              "fe80::253:5600:0:1001");
    EXPECT_EQ(to_string(Gid{}), "::");
    EXPECT_EQ(to_string(make_gid(0, Guid{1})), "::1");
    EXPECT_EQ(to_string(make_gid(0x2001'0DB8'0000'0001U, Guid{0})), "2001:db8:0:1::");
}

}  // namespace
}  // namespace fabric
