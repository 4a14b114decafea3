// When the handle of a tag is free again: once nothing of it is still to be polled.
#include "simverbs/driver/tag_handles.hpp"

#include <gtest/gtest.h>

#include "simverbs/model/opcodes.hpp"
#include "simverbs/model/statuses.hpp"

namespace simverbs::driver {
namespace {

constexpr bool kSignaled = true;
constexpr bool kSilent = false;

class Handles : public testing::Test {
  protected:
    void settle(const TagHandle& handle, WcOpcode opcode, WcStatus status = WcStatus::kSuccess,
                std::uint32_t flags = 0) {
        Cqe entry;
        put_tag_place(7, handle.number, entry);
        entry.tag_generation = handle.generation;
        entry.opcode = static_cast<std::uint8_t>(opcode);
        entry.status = static_cast<std::uint8_t>(status);
        entry.wc_flags = flags;
        handles_.settle(entry);
    }

    TagHandles handles_{2};
};

TEST_F(Handles, AreUsedUpAndComeBackInTheOrderOfTheirRelease) {
    const auto first = handles_.take(kSilent);
    const auto second = handles_.take(kSilent);
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(handles_.take(kSilent));
    const auto data = static_cast<std::uint32_t>(WcFlag::kTmDataValid);
    settle(*second, WcOpcode::kTmRecv, WcStatus::kSuccess, data);
    settle(*first, WcOpcode::kTmRecv, WcStatus::kSuccess, data);
    EXPECT_EQ(handles_.take(kSilent)->number, second->number);
    EXPECT_EQ(handles_.take(kSilent)->number, first->number);
}

TEST_F(Handles, WaitForTheCompletionOfTheAddAndForTheMessage) {
    const auto handle = handles_.take(kSignaled);
    settle(*handle, WcOpcode::kTmAdd);
    EXPECT_FALSE(handles_.is_free(handle->number));
    // The match alone: the data of a rendezvous is still to come.
    settle(*handle, WcOpcode::kTmRecv);
    EXPECT_FALSE(handles_.is_free(handle->number));
    settle(*handle, WcOpcode::kTmRecv, WcStatus::kSuccess,
           static_cast<std::uint32_t>(WcFlag::kTmDataValid));
    EXPECT_TRUE(handles_.is_free(handle->number));
}

TEST_F(Handles, AreFreeOnceAnAddHasFailed) {
    const auto handle = handles_.take(kSignaled);
    settle(*handle, WcOpcode::kTmAdd, WcStatus::kTmErr);
    EXPECT_TRUE(handles_.is_free(handle->number));
}

TEST_F(Handles, AreFreeOnceADeleteHasSucceeded) {
    const auto handle = handles_.take(kSilent);
    handles_.begin_delete(handle->number, kSignaled);
    settle(*handle, WcOpcode::kTmDel);
    EXPECT_TRUE(handles_.is_free(handle->number));
}

TEST_F(Handles, WaitForTheMessageWhereADeleteCameTooLate) {
    const auto handle = handles_.take(kSilent);
    handles_.begin_delete(handle->number, kSignaled);
    settle(*handle, WcOpcode::kTmDel, WcStatus::kTmErr);
    EXPECT_FALSE(handles_.is_free(handle->number));
    settle(*handle, WcOpcode::kTmRecv, WcStatus::kSuccess,
           static_cast<std::uint32_t>(WcFlag::kTmDataValid));
    EXPECT_TRUE(handles_.is_free(handle->number));
}

TEST_F(Handles, IgnoreCompletionsOfAnEarlierTag) {
    const auto first = handles_.take(kSilent);
    handles_.begin_delete(first->number, kSilent);  // counts as done
    handles_.take(kSilent);
    const auto again = handles_.take(kSilent);
    ASSERT_EQ(again->number, first->number);
    settle(*first, WcOpcode::kTmRecv, WcStatus::kSuccess,
           static_cast<std::uint32_t>(WcFlag::kTmDataValid));
    EXPECT_FALSE(handles_.is_free(again->number));
}

}  // namespace
}  // namespace simverbs::driver
