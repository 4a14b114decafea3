#include "fabric/core/counted.hpp"

#include <gtest/gtest.h>

namespace fabric {
namespace {

TEST(Counted, IsSingularWhereThereIsOne) {
    EXPECT_EQ(counted(0, "packet"), "0 packets");
    EXPECT_EQ(counted(1, "packet"), "1 packet");
    EXPECT_EQ(counted(2, "packet"), "2 packets");
    EXPECT_EQ(counted(1, "retry", "retries"), "1 retry");
    EXPECT_EQ(counted(3, "retry", "retries"), "3 retries");
}

}  // namespace
}  // namespace fabric
