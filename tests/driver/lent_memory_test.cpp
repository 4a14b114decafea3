// The memory that a server may have copied by this process: registered memory with its rights, and
// nothing beside it.
#include "simverbs/driver/lent_memory.hpp"

#include <gtest/gtest.h>

#include "simverbs/hca/command.hpp"
#include "simverbs/model/access.hpp"

namespace simverbs::driver {
namespace {

constexpr std::uint32_t kRead = 0;
constexpr auto kWrite = static_cast<std::uint32_t>(Access::kLocalWrite);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

class Lent : public testing::Test {
  protected:
    void register_region(std::uint32_t handle, std::uint64_t address, std::uint64_t length,
                         std::uint32_t access, int error = 0) {
        RegisterMr command;
        command.context = 1;
        command.address = address;
        command.length = length;
        command.access = access;
        RegisterMrReply reply;
        reply.handle = handle;
        memory_.before(RegisterMr::kCode, bytes_of(command));
        memory_.after(RegisterMr::kCode, bytes_of(command), error, bytes_of(reply));
    }
    void reregister(const ReregisterMr& command, int error = 0) {
        const RegisterMrReply reply;
        memory_.before(ReregisterMr::kCode, bytes_of(command));
        memory_.after(ReregisterMr::kCode, bytes_of(command), error, bytes_of(reply));
    }
    void deregister(std::uint32_t handle, int error = 0) {
        DeregisterMr command;
        command.context = 1;
        command.handle = handle;
        memory_.after(DeregisterMr::kCode, bytes_of(command), error, {});
    }

    LentMemory memory_;
};

TEST_F(Lent, NothingAtFirst) {
    EXPECT_FALSE(memory_.may_copy(0x1000, 1, false));
}

TEST_F(Lent, ARegionToItsLastByte) {
    register_region(1, 0x1000, 0x100, kWrite);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x100, true));
    EXPECT_TRUE(memory_.may_copy(0x10ff, 1, false));
    EXPECT_FALSE(memory_.may_copy(0x1000, 0x101, false));
    EXPECT_FALSE(memory_.may_copy(0xfff, 2, false));
}

TEST_F(Lent, ReadsAloneOfARegionWithoutWriteAccess) {
    register_region(1, 0x1000, 0x100, kRead);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x100, false));
    EXPECT_FALSE(memory_.may_copy(0x1000, 1, true));
}

TEST_F(Lent, NothingOfARefusedRegion) {
    register_region(1, 0x1000, 0x100, kWrite, EINVAL);
    EXPECT_FALSE(memory_.may_copy(0x1000, 1, false));
}

TEST_F(Lent, OverlappingRegionsUntilTheLastIsDeregistered) {
    register_region(1, 0x1000, 0x200, kWrite);
    register_region(2, 0x1100, 0x200, kWrite);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x300, true));  // over both
    deregister(1);
    EXPECT_FALSE(memory_.may_copy(0x1000, 0x100, false));
    EXPECT_TRUE(memory_.may_copy(0x1100, 0x200, true));
    deregister(2);
    EXPECT_FALSE(memory_.may_copy(0x1100, 1, false));
}

TEST_F(Lent, ARegionThatCouldNotBeDeregistered) {
    register_region(1, 0x1000, 0x100, kWrite);
    deregister(1, EBUSY);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x100, true));
}

TEST_F(Lent, TheNewPlaceAloneAfterReregistering) {
    register_region(1, 0x1000, 0x100, kWrite);
    ReregisterMr command;
    command.context = 1;
    command.handle = 1;
    command.flags = kReregisterTranslation;
    command.address = 0x8000;
    command.length = 0x40;
    reregister(command);
    EXPECT_FALSE(memory_.may_copy(0x1000, 1, false));
    EXPECT_TRUE(memory_.may_copy(0x8000, 0x40, true));
}

TEST_F(Lent, TheOldPlaceAloneAfterReregisteringFailed) {
    register_region(1, 0x1000, 0x100, kWrite);
    ReregisterMr command;
    command.context = 1;
    command.handle = 1;
    command.flags = kReregisterTranslation | kReregisterAccess;
    command.address = 0x8000;
    command.length = 0x40;
    command.access = kWrite;
    reregister(command, ENOMEM);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x100, true));
    EXPECT_FALSE(memory_.may_copy(0x8000, 1, false));
}

TEST_F(Lent, NothingOfAClosedContext) {
    register_region(1, 0x1000, 0x100, kWrite);
    register_region(2, 0x4000, 0x100, kWrite);
    CloseContext command;
    command.context = 1;
    memory_.after(CloseContext::kCode, bytes_of(command), 0, {});
    EXPECT_FALSE(memory_.may_copy(0x1000, 1, false));
    EXPECT_FALSE(memory_.may_copy(0x4000, 1, false));
}

TEST_F(Lent, ARangeThatWrapsAroundIsNone) {
    register_region(1, 0, ~std::uint64_t{0}, kWrite);
    EXPECT_TRUE(memory_.may_copy(0x1000, 0x100, true));
    EXPECT_FALSE(memory_.may_copy(~std::uint64_t{0} - 1, 16, false));
}

}  // namespace
}  // namespace simverbs::driver
