// Direct placement of data: riomap, riounmap and riowrite, as rsocket(7) has them.
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "rsockets.hpp"

namespace rdmacm_test {
namespace {

// The server maps memory, and the client writes to it: "an application must set the number of IO
// mappings that are available to the remote peer", before it connects. A test unmaps what it has
// mapped: librdmacm forgets an rsocket before its mappings, and rclose() would look for them for
// ever.
class IoMaps : public Rsockets {
  protected:
    void connect_with_maps(int count) {
        client = make();
        set_option(client, SOL_RDMA, RDMA_IOMAPSIZE, count);
        ASSERT_NO_FATAL_FAILURE(connect());
    }
    // "The mapping is not guaranteed to be available until after the remote peer receives a data
    // transfer initiated after riomap has completed."
    void tell_client() {
        ASSERT_NO_FATAL_FAILURE(send(server, "mapped"));
        EXPECT_EQ(receive(client, 6), "mapped");
    }
    // "A message sent immediately after initiating an iowrite may be used to notify the receiver".
    void tell_server() {
        ASSERT_NO_FATAL_FAILURE(send(client, "written"));
        EXPECT_EQ(receive(server, 7), "written");
    }

    std::array<char, 8192> bytes{};
};

TEST_P(IoMaps, AreWrittenAtTheOffsetGiven) {
    ASSERT_NO_FATAL_FAILURE(connect_with_maps(1));
    ASSERT_EQ(riomap(server, bytes.data(), bytes.size(), PROT_WRITE, 0, 0x10000), 0x10000)
        << std::strerror(errno);
    ASSERT_NO_FATAL_FAILURE(tell_client());
    const std::string small = "directly";
    const std::string large(5000, 'L');  // beyond what goes inline and in one transfer
    ASSERT_EQ(riowrite(client, small.data(), small.size(), 0x10000 + 16, 0), small.size());
    ASSERT_EQ(riowrite(client, large.data(), large.size(), 0x10000 + 100, 0), large.size());
    ASSERT_NO_FATAL_FAILURE(tell_server());
    EXPECT_EQ(std::string(bytes.data() + 16, small.size()), small);
    EXPECT_EQ(std::string(bytes.data() + 100, large.size()), large);
    EXPECT_EQ(bytes[99], 0);
    EXPECT_EQ(bytes[100 + 5000], 0);
    EXPECT_EQ(riounmap(server, bytes.data(), bytes.size()), 0) << std::strerror(errno);
}

// "If the user selects -1 for the offset, rsockets selects one": the address.
TEST_P(IoMaps, HaveAnOffsetOfTheLibrary) {
    ASSERT_NO_FATAL_FAILURE(connect_with_maps(1));
    const off_t offset = riomap(server, bytes.data(), bytes.size(), PROT_WRITE, 0, -1);
    ASSERT_EQ(offset, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(bytes.data())));
    ASSERT_NO_FATAL_FAILURE(tell_client());
    ASSERT_EQ(riowrite(client, "here", 4, offset + 8, 0), 4U);
    ASSERT_NO_FATAL_FAILURE(tell_server());
    EXPECT_EQ(std::string(bytes.data() + 8, 4), "here");
    EXPECT_EQ(riounmap(server, bytes.data(), bytes.size()), 0) << std::strerror(errno);
}

TEST_P(IoMaps, AreAsManyAsThePeerHasRoomFor) {
    ASSERT_NO_FATAL_FAILURE(connect_with_maps(2));
    for (const std::size_t at : {0, 1024}) {
        ASSERT_EQ(riomap(server, bytes.data() + at, 1024, PROT_WRITE, 0, static_cast<off_t>(at)),
                  static_cast<off_t>(at));
    }
    EXPECT_EQ(riomap(server, bytes.data() + 2048, 1024, PROT_WRITE, 0, 2048), -1);
    EXPECT_EQ(errno, ENOMEM);
    ASSERT_NO_FATAL_FAILURE(tell_client());
    ASSERT_EQ(riowrite(client, "a", 1, 0, 0), 1U);
    ASSERT_EQ(riowrite(client, "b", 1, 1024, 0), 1U);
    ASSERT_NO_FATAL_FAILURE(tell_server());
    EXPECT_EQ(bytes[0], 'a');
    EXPECT_EQ(bytes[1024], 'b');
    EXPECT_EQ(riowrite(client, "c", 1, 4096, 0), 0U);  // nothing is mapped there
    // A mapping that is removed makes room.
    EXPECT_EQ(riounmap(server, bytes.data(), 1024), 0) << std::strerror(errno);
    EXPECT_EQ(riomap(server, bytes.data() + 2048, 1024, PROT_WRITE, 0, 2048), 2048);
    for (const std::size_t at : {1024, 2048}) {
        EXPECT_EQ(riounmap(server, bytes.data() + at, 1024), 0) << std::strerror(errno);
    }
}

// "By default, an rsocket does not support remote IO mappings."
TEST_P(IoMaps, NeedRoomAtThePeer) {
    ASSERT_NO_FATAL_FAILURE(connect());
    EXPECT_EQ(riomap(server, bytes.data(), bytes.size(), PROT_WRITE, 0, 0), -1);
    EXPECT_EQ(errno, ENOMEM);
    // Memory of its own use needs none.
    EXPECT_EQ(riomap(server, bytes.data(), bytes.size(), PROT_NONE, 0, 64), 64);
    EXPECT_EQ(riounmap(server, bytes.data(), bytes.size()), 0) << std::strerror(errno);
}

TEST_P(IoMaps, RefuseWhatIsNone) {
    ASSERT_NO_FATAL_FAILURE(connect_with_maps(1));
    EXPECT_EQ(riomap(server, bytes.data(), bytes.size(), PROT_READ, 0, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(riounmap(server, bytes.data(), bytes.size()), -1);
    EXPECT_EQ(errno, EINVAL);
    const int unconnected = make();
    EXPECT_EQ(riomap(unconnected, bytes.data(), bytes.size(), PROT_WRITE, 0, 0), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(rclose(unconnected), 0);
}

INSTANTIATE_TEST_SUITE_P(OnBothLinkLayers, IoMaps, testing::Values("star:2", "eth-star:2"));

}  // namespace
}  // namespace rdmacm_test
