#include "file_copy.hpp"

#include <chrono>
#include <functional>
#include <sstream>
#include <string>

#include <boost/fiber/all.hpp>
#include <gtest/gtest.h>

#include <simverbs/connect.hpp>
#include <simverbs/gtest.hpp>
#include <simverbs/lab.hpp>

namespace {

using namespace std::chrono_literals;
using file_copy::name_of;

struct Copy {
    std::string sender;  // names of outcomes
    std::string receiver;
    std::string text;
};

std::string text_of(std::size_t bytes) {
    std::string text(bytes, ' ');
    for (std::size_t i = 0; i < bytes; ++i) {
        text[i] = static_cast<char>('a' + i % 23);
    }
    return text;
}

// Copies from h0 to h1. `inject` is called when both are connected: its fault lasts as long as the
// copy.
Copy copy(const std::string& text, const std::function<simverbs::Fault()>& inject,
          const file_copy::Options& options = {},
          std::ios_base::iostate disk = std::ios_base::goodbit) {
    simverbs::Lab lab({.topology = "star:2"});
    boost::fibers::promise<file_copy::FeedbackPlace> place;
    boost::fibers::promise<ibv_qp*> sender_end;
    boost::fibers::barrier ready(2);
    Copy result;
    lab.host("h0", [&](ibv_context* device) {
        file_copy::Sender sender(device, options);
        place.set_value(sender.feedback_place());
        sender_end.set_value(sender.qp());
        ready.wait();
        const simverbs::Fault fault = inject();
        std::istringstream file(text);
        result.sender = name_of(sender.send(file));
        EXPECT_THAT(fault, simverbs::Fired(testing::Ge(1U)));
    });
    lab.host("h1", [&](ibv_context* device) {
        file_copy::Receiver receiver(device, place.get_future().get(), options);
        simverbs::connect(*sender_end.get_future().get(), *receiver.qp(),
                          {.timeout = 8, .rnr_retries = 2});
        receiver.begin();
        ready.wait();
        std::ostringstream file;
        file.setstate(disk);
        result.receiver = name_of(receiver.receive(file));
        result.text = file.str();
    });
    lab.run();
    return result;
}

simverbs::Fault nothing() {
    return simverbs::FaultWords(SIMVERBS_FAULT_MARK).on_packet().inject();
}
// The receiver stalls for 20 ms, in the midst of the file.
simverbs::Fault stalled_receiver() {
    return simverbs::process_stop("h1", 20ms).on_packet().from("h0").nth(10).inject();
}

TEST(FileCopy, CopiesFilesOfAnySize) {
    for (const std::size_t bytes : {0U, 1U, 4096U, 4097U, 1'000'000U}) {
        const Copy result = copy(text_of(bytes), nothing);
        EXPECT_EQ(result.sender, "copied");
        EXPECT_EQ(result.receiver, "copied");
        EXPECT_TRUE(result.text == text_of(bytes)) << bytes << " bytes";
    }
}

TEST(FileCopy, IsWholeWhenATwentiethOfAllPacketsIsLost) {
    const Copy result =
        copy(text_of(300'000), [] { return simverbs::drop().with_chance(1, 20).inject(); });
    EXPECT_EQ(result.sender, "copied");
    EXPECT_TRUE(result.text == text_of(300'000));
}

TEST(FileCopy, WaitsForAReceiverThatStalls) {
    const Copy result = copy(text_of(300'000), stalled_receiver);
    EXPECT_EQ(result.sender, "copied");
    EXPECT_EQ(result.receiver, "copied");
}

TEST(FileCopy, IsReportedLostAtBothEnds) {
    const Copy result = copy(text_of(300'000), [] {
        return simverbs::link_down("h1-s0").on_packet().from("h0").nth(30).inject();
    });
    EXPECT_EQ(result.sender, "lost");
    EXPECT_EQ(result.receiver, "lost");
}

TEST(FileCopy, TellsTheSenderThatTheDiskIsFull) {
    const Copy result = copy(text_of(300'000), nothing, {}, std::ios_base::badbit);
    EXPECT_EQ(result.sender, "write failed");
    EXPECT_EQ(result.receiver, "write failed");
}

// Fails: this sender takes no notice of credits.
TEST(FileCopy, DISABLED_WaitsForAReceiverThatStallsWithoutCredits) {
    const Copy result = copy(text_of(300'000), stalled_receiver, {.waits_for_credits = false});
    EXPECT_EQ(result.sender, "copied");
}

}  // namespace
