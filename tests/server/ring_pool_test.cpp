// The memory of rings on both sides: the server's pool, and the segments as a client maps them.
#include "simverbs/server/ring_pool.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "simverbs/driver/ring_segments.hpp"

namespace simverbs {
namespace {

class Rings : public ::testing::Test {
  protected:
    struct Ring {
        std::byte* server;
        std::byte* client;
        std::size_t bytes;
    };
    void TearDown() override {
        for (const std::byte* ring : mapped_) {
            segments_.unmap(ring);
        }
    }
    Ring make(std::size_t bytes) { return make(bytes, bytes); }
    Ring make(std::size_t bytes, std::size_t zeroed) {
        const RingPool::Ring ring = pool_.make(bytes, zeroed);
        mapped_.push_back(segments_.map(ring.descriptor, pool_.offset_of(ring.base)));
        return {ring.base, mapped_.back(), bytes};
    }
    void end(const Ring& ring) {
        pool_.release(ring.server);
        segments_.unmap(ring.client);
        std::erase(mapped_, ring.client);
    }
    static bool is_zeroed(const Ring& ring) {
        return std::all_of(ring.server, ring.server + ring.bytes,
                           [](std::byte byte) { return byte == std::byte{0}; });
    }
    // Mappings of segments: those of the server, and those of the client.
    static int mappings() {
        std::ifstream maps("/proc/self/maps");
        int found = 0;
        for (std::string line; std::getline(maps, line);) {
            found += line.find("/memfd:simverbs") == std::string::npos ? 0 : 1;
        }
        return found;
    }

    RingPool pool_;
    driver::RingSegments segments_;
    std::vector<std::byte*> mapped_;
};

TEST_F(Rings, AreSeenByBothSidesAndOverlapNowhere) {
    std::vector<Ring> rings;
    for (std::size_t i = 0; i < 2000; ++i) {
        rings.push_back(make(1 + i * 37 % 5000));
    }
    for (std::size_t i = 0; i < rings.size(); ++i) {
        ASSERT_TRUE(is_zeroed(rings[i])) << i;
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(rings[i].client) % 64, 0U);
        std::memset(rings[i].client, static_cast<int>(i % 255 + 1), rings[i].bytes);
    }
    for (std::size_t i = 0; i < rings.size(); ++i) {
        const auto written = static_cast<std::byte>(i % 255 + 1);
        ASSERT_EQ(std::count(rings[i].server, rings[i].server + rings[i].bytes, written),
                  static_cast<std::ptrdiff_t>(rings[i].bytes))
            << i;
    }
}

TEST_F(Rings, ShareMappings) {
    std::vector<Ring> rings;
    for (int i = 0; i < 20'000; ++i) {
        rings.push_back(make(1024));
    }
    EXPECT_EQ(mappings(), 2 * static_cast<int>(pool_.segments()));
    EXPECT_LT(mappings(), 20);
}

TEST_F(Rings, AreZeroedWhereTheirMemoryWasAnothersBefore) {
    const Ring stays = make(640);
    const Ring first = make(640);
    std::memset(first.client, 7, first.bytes);
    end(first);
    const Ring second = make(640);
    EXPECT_EQ(second.server, first.server);
    EXPECT_TRUE(is_zeroed(second));
    std::memset(second.client, 7, second.bytes);
    end(second);
    const Ring third = make(640, 128);
    EXPECT_EQ(third.server, first.server);
    EXPECT_TRUE(is_zeroed({third.server, third.client, 128}));
    end(third);
    end(stays);
    const Ring after_all = make(1920);  // where several were
    EXPECT_TRUE(is_zeroed(after_all));
}

TEST_F(Rings, ASegmentEndsWithItsLastRing) {
    std::vector<Ring> rings;
    for (int i = 0; i < 10'000; ++i) {
        rings.push_back(make(4096));
    }
    EXPECT_GT(pool_.segments(), 2U);
    for (const Ring& ring : rings) {
        end(ring);
    }
    EXPECT_EQ(pool_.segments(), 1U) << "that of the next rings";
    EXPECT_EQ(mappings(), 1) << "the client's are gone";
}

TEST_F(Rings, ALargeOneHasASegmentOfItsOwn) {
    const Ring small = make(64);
    const Ring large = make(std::size_t{3} << 20);
    EXPECT_EQ(pool_.segments(), 2U);
    large.client[large.bytes - 1] = std::byte{1};
    EXPECT_EQ(large.server[large.bytes - 1], std::byte{1});
    end(large);
    EXPECT_EQ(pool_.segments(), 1U);
    end(small);
}

TEST_F(Rings, LargeOnesKeepNoDescriptor) {
    const Ring small = make(64);
    const int before = dup(STDIN_FILENO);  // the lowest that is free
    close(before);
    for (int i = 0; i < 8; ++i) {
        make(std::size_t{1} << 20);
    }
    const int after = dup(STDIN_FILENO);
    close(after);
    EXPECT_EQ(after, before);
    end(small);
}

// The server has given back a segment, and its client still uses a ring of it: rings of the next
// one are others.
TEST_F(Rings, OfASegmentThatTheServerHasGivenBackStayTheClients) {
    const Ring large = make(std::size_t{1} << 20);
    pool_.release(large.server);
    const Ring next = make(std::size_t{1} << 20);
    EXPECT_NE(next.client, large.client);
    next.server[0] = std::byte{9};
    EXPECT_EQ(next.client[0], std::byte{9});
    EXPECT_EQ(large.client[0], std::byte{0});
}

}  // namespace
}  // namespace simverbs
