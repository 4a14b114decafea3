#include "simverbs/hca/event_pipe.hpp"

#include <poll.h>
#include <unistd.h>

#include "tests/support/host.hpp"

namespace simverbs::test {
namespace {

bool readable(int descriptor) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
}

TEST(EventPipe, IsReadableExactlyWhileSomethingIsThere) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    EXPECT_FALSE(readable(reader));
    pipe.send({.subject = 7});
    EXPECT_TRUE(readable(reader));
    EXPECT_EQ(Host::read_all(reader).size(), 1U);
    EXPECT_FALSE(readable(reader));
    ::close(reader);
}

TEST(EventPipe, LosesNothingThatAFullSocketDoesNotTake) {
    constexpr std::uint32_t kEvents = 5'000;
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    for (std::uint32_t i = 0; i < kEvents; ++i) {
        pipe.send({.subject = i});
    }
    EXPECT_FALSE(backlog.flush()) << "the socket was expected to be full";
    std::vector<std::uint32_t> subjects;
    bool empty = false;
    while (!empty) {
        for (const EventMessage& message : Host::read_all(reader)) {
            subjects.push_back(message.subject);
        }
        empty = backlog.flush() && !readable(reader);
    }
    ASSERT_EQ(subjects.size(), kEvents);
    for (std::uint32_t i = 0; i < kEvents; ++i) {
        EXPECT_EQ(subjects[i], i);
    }
    ::close(reader);
}

TEST(EventPipe, AReaderThatWentAwayHurtsNobody) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    ::close(pipe.take_reader());
    pipe.send({});
    EXPECT_TRUE(backlog.flush());
}

TEST(EventPipe, ItsReaderIsGivenOutOnce) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    EXPECT_GE(reader, 0);
    EXPECT_EQ(pipe.take_reader(), -1);
    ::close(reader);
}

}  // namespace
}  // namespace simverbs::test
