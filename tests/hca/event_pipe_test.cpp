#include "simverbs/hca/event_pipe.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

// Returns the subjects of what can be read.
std::vector<std::uint32_t> subjects_at(int reader) {
    std::vector<std::uint32_t> subjects;
    for (const EventMessage& message : Host::read_all(reader)) {
        subjects.push_back(message.subject);
    }
    return subjects;
}

TEST(EventPipe, AForkedChildReadsWhatWasUnreadWithoutTakingItFromItsParent) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    pipe.send({.subject = 1});
    pipe.send({.subject = 2});
    EXPECT_TRUE(backlog.has(reader));
    backlog.note_unread();
    const pid_t child = fork();
    if (child == 0) {
        const bool done = backlog.separate();
        pipe.send({.subject = 3});
        const bool right = subjects_at(reader) == std::vector<std::uint32_t>{1, 2, 3};
        _exit(done && right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    pipe.send({.subject = 4});
    EXPECT_EQ(subjects_at(reader), (std::vector<std::uint32_t>{1, 2, 4}));
    ::close(reader);
    EXPECT_FALSE(backlog.has(reader));
}

TEST(EventPipe, AForkedChildLeavesADescriptorAloneThatHasTheNumberOfAClosedReader) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    ::close(reader);
    const int other = ::dup(STDERR_FILENO);
    ASSERT_EQ(other, reader);
    struct stat before {};
    struct stat after {};
    ASSERT_EQ(fstat(other, &before), 0);
    backlog.note_unread();
    EXPECT_TRUE(backlog.separate());
    ASSERT_EQ(fstat(other, &after), 0);
    EXPECT_EQ(before.st_ino, after.st_ino);
    ::close(other);
}

TEST(EventPipe, ItsReaderIsGivenOutOnce) {
    EventBacklog backlog;
    EventPipe pipe(backlog);
    const int reader = pipe.take_reader();
    EXPECT_GE(reader, 0);
    EXPECT_EQ(pipe.take_reader(), -1);
    ::close(reader);
}

// A pipe, its read end, and a thread that waits.
class EventTakers : public testing::Test {
  protected:
    ~EventTakers() override { ::close(reader); }

    EventBacklog backlog;
    std::optional<EventPipe> pipe{std::in_place, backlog};
    int reader = pipe->take_reader();
    EventTaker taker;
};

TEST_F(EventTakers, GetsAMessageWithoutTheDescriptor) {
    pipe->add(taker);
    pipe->send({.subject = 7});
    EXPECT_TRUE(taker.has_message);
    EXPECT_EQ(taker.message.subject, 7U);
    EXPECT_FALSE(readable(reader));
    EXPECT_FALSE(pipe->holds_message());

    pipe->send({.subject = 8});  // the next one waits for whoever comes next
    EXPECT_EQ(taker.message.subject, 7U);
    EXPECT_TRUE(pipe->holds_message());
    EXPECT_EQ(subjects_at(reader), std::vector<std::uint32_t>{8});
    pipe->remove(taker);
}

TEST_F(EventTakers, AsleepGetsItThroughTheDescriptor) {
    pipe->add(taker);
    taker.is_awake = false;
    pipe->send({.subject = 7});
    EXPECT_FALSE(taker.has_message);
    EXPECT_EQ(subjects_at(reader), std::vector<std::uint32_t>{7});
    pipe->remove(taker);
}

TEST_F(EventTakers, GetsNoMessageBeforeAnEarlierOne) {
    pipe->send({.subject = 7});
    pipe->add(taker);
    pipe->send({.subject = 8});
    EXPECT_FALSE(taker.has_message);
    EXPECT_TRUE(pipe->claim());
    EXPECT_TRUE(pipe->claim());
    EXPECT_FALSE(pipe->claim());
    EXPECT_EQ(subjects_at(reader), (std::vector<std::uint32_t>{7, 8}));
    pipe->send({.subject = 9});
    EXPECT_TRUE(taker.has_message);
    pipe->remove(taker);
}

TEST_F(EventTakers, OfTwoNoneIsPreferred) {
    EventTaker other;
    pipe->add(taker);
    pipe->add(other);
    pipe->send({.subject = 7});
    EXPECT_FALSE(taker.has_message || other.has_message);
    EXPECT_EQ(subjects_at(reader), std::vector<std::uint32_t>{7});
    pipe->remove(other);
    EXPECT_TRUE(pipe->claim());
    pipe->send({.subject = 8});
    EXPECT_TRUE(taker.has_message);
    pipe->remove(taker);
}

TEST_F(EventTakers, LearnsOfTheEndOfThePipe) {
    pipe->add(taker);
    pipe.reset();
    EXPECT_EQ(taker.pipe, nullptr);
}

// A child finds what is sent in it in the socket, whichever thread goes on there.
TEST_F(EventTakers, OfTheParentGetsNothingInAChild) {
    pipe->add(taker);
    backlog.note_unread();
    EXPECT_TRUE(backlog.separate());
    EXPECT_EQ(taker.pipe, nullptr);
    pipe->send({.subject = 7});
    EXPECT_FALSE(taker.has_message);
    EXPECT_EQ(subjects_at(reader), std::vector<std::uint32_t>{7});
}

}  // namespace
}  // namespace simverbs::test
