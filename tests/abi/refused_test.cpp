// Functions that are not modelled refuse in the manner of its kind, and is named once with
// SIMVERBS_WARN=1. Called through libibverbs.so.1, so that the trampolines are in the way.
#include <cerrno>
#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

class AbiRefused : public ::testing::Test {
  protected:
    AbiRefused() : library_(dlopen(SIMVERBS_LIBIBVERBS, RTLD_NOW | RTLD_LOCAL)) {
        EXPECT_NE(library_, nullptr) << dlerror();
    }

    template <typename Result>
    Result call(const char* name, const char* version) {
        auto* function = reinterpret_cast<Result (*)()>(dlvsym(library_, name, version));
        EXPECT_NE(function, nullptr) << name;
        errno = 0;
        return function();
    }

    void* library_;
};

TEST_F(AbiRefused, AnErrnoResultIsEopnotsupp) {
    EXPECT_EQ(call<int>("ibv_cmd_modify_wq", "IBVERBS_PRIVATE_34"), EOPNOTSUPP);
    EXPECT_EQ(call<int>("ibv_cmd_modify_wq", "IBVERBS_PRIVATE_64"), EOPNOTSUPP);
    EXPECT_EQ(call<int>("ibv_cmd_read_comp_cntr", "IBVERBS_PRIVATE_65"), EOPNOTSUPP);
}

TEST_F(AbiRefused, APointerIsNullWithErrno) {
    EXPECT_EQ(call<void*>("verbs_open_device", "IBVERBS_PRIVATE_34"), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(AbiRefused, ACountIsMinusOneWithErrno) {
    EXPECT_EQ(call<int>("ibv_cmd_poll_cq", "IBVERBS_PRIVATE_34"), -1);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(AbiRefused, TheOldAbiHasNoDevices) {
    EXPECT_EQ(call<void*>("ibv_get_device_list", "IBVERBS_1.0"), nullptr);
    EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(AbiRefused, IsNamedOnceWhenWarningsAreWanted) {
    setenv("SIMVERBS_WARN", "1", 1);
    ::testing::internal::CaptureStderr();
    call<int>("ibv_cmd_query_mr", "IBVERBS_PRIVATE_34");
    call<int>("ibv_cmd_query_mr", "IBVERBS_PRIVATE_34");
    unsetenv("SIMVERBS_WARN");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "simverbs: ibv_cmd_query_mr is not modelled: EOPNOTSUPP\n");
}

TEST_F(AbiRefused, ProviderRegistrationIsAcceptedAndIgnored) {
    call<void>("verbs_register_driver_34", "IBVERBS_PRIVATE_34");
    EXPECT_EQ(errno, 0);
}

TEST_F(AbiRefused, TheProvidersDataIsZero) {
    const void* data = dlvsym(library_, "verbs_allow_disassociate_destroy", "IBVERBS_PRIVATE_34");
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(*static_cast<const char*>(data), 0);
}

// One copy of the code: what libibverbs.so.1 answers is libsimverbs.so.0's.
TEST_F(AbiRefused, BothLibrariesGiveTheSameObjects) {
    void* simverbs = dlopen(SIMVERBS_LIBSIMVERBS, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(simverbs, nullptr) << dlerror();
    using Name = const char* (*)(int);
    const auto through_trampoline =
        reinterpret_cast<Name>(dlvsym(library_, "ibv_wc_status_str", "IBVERBS_1.1"));
    const auto direct =
        reinterpret_cast<Name>(dlvsym(simverbs, "ibv_wc_status_str", "IBVERBS_1.1"));
    ASSERT_NE(through_trampoline, nullptr);
    ASSERT_NE(direct, nullptr);
    EXPECT_EQ(through_trampoline(12), direct(12));  // the pointer, not only the text
}

}  // namespace
