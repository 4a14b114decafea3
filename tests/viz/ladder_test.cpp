// Ladders of traces written by hand: what is folded, where arrows end, how gaps in time are shown.
#include "viz/ladder.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "drawing.hpp"
#include "ladder_of.hpp"
#include "viz/messages.hpp"

namespace viz_test {
namespace {

double life_line(const Drawing& drawing, const std::string& heading) {
    const auto text = find_text(drawing, heading);
    return text ? (text->area.left + text->area.right) / 2 : 0;
}

// Arrows of packets: lines that are neither of the key, upright nor level.
std::vector<DrawnLine> arrows(const Drawing& drawing) {
    std::vector<DrawnLine> found;
    for (const DrawnLine& line : drawing.lines) {
        const Point from = line.points.front();
        const Point to = line.points.back();
        if (std::abs(to.x - from.x) > 12 && to.y != from.y) {
            found.push_back(line);
        }
    }
    return found;
}

TEST(Ladder, FoldsThePacketsOfAMessage) {
    LadderOf of;
    const std::vector<std::string> opcodes = {"SEND_FIRST", "SEND_MIDDLE", "SEND_LAST"};
    for (int i = 0; i < 3; ++i) {
        of.send(i, opcodes.at(static_cast<std::size_t>(i)), 100 + i);
    }
    for (int i = 0; i < 3; ++i) {
        of.arrive(10 + i, 100 + i);
    }
    EXPECT_TRUE(find_text(of.drawing(), "SEND 3 KiB, PSN 100-102, 3 packets"));
    EXPECT_EQ(arrows(of.drawing()).size(), 1U);
    EXPECT_EQ(arrows(of.drawing({.folds = false})).size(), 3U);
}

TEST(Ladder, DoesNotFoldWhatEndsDifferently) {
    LadderOf of;
    of.send(0, "SEND_FIRST", 100);
    of.send(1, "SEND_MIDDLE", 101);
    of.send(2, "SEND_LAST", 102);
    of.arrive(10, 100);
    of.lose(11, 0, 101);
    of.arrive(12, 102);
    EXPECT_EQ(message_parts(of.run()).size(), 3U);
}

TEST(Ladder, CutsAnArrowThatEndsBelowTheRows) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.send(1, "SEND_ONLY", 101);
    of.arrive(kMicrosecond, 100);
    of.arrive(2 * kMicrosecond, 101);
    const Drawing drawing = of.drawing({.rows = 3});
    const std::vector<DrawnLine> drawn = arrows(drawing);
    ASSERT_EQ(drawn.size(), 2U);
    EXPECT_NEAR(drawn[0].points.back().x, life_line(drawing, "h1 QP"), 8);
    EXPECT_LT(drawn[1].points.back().x, life_line(drawing, "h1 QP") - 50);
    EXPECT_TRUE(find_text(drawing, "ends at 2 us, further down"));
}

TEST(Ladder, EndsALostPacketWhereItWasLostWithTheFault) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.lose(1, 0, 100);
    of.send(2, "SEND_ONLY", 101);
    of.arrive(9, 101);  // tells who the peer is
    const Drawing drawing = of.drawing();
    EXPECT_NEAR(arrows(drawing).front().points.back().x, life_line(drawing, "h0 QP"), 50);
    EXPECT_TRUE(find_text(drawing, "fault 3: drop, lost at h0 port 1"));
}

TEST(Ladder, EndsADiscardedPacketInAMarkWithTheReason) {
    LadderOf of;
    of.add(0, 1, "state", "qp_state",
           {{"qpn", kQp},
            text_field("from", "RTS"),
            text_field("to", "ERR"),
            text_field("trigger", "modify")});
    of.send(1, "SEND_ONLY", 100);
    of.arrive(9, 100);
    of.discard(9, 100);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "queue pair in ERR"));
    EXPECT_LT(arrows(drawing).front().points.back().x, life_line(drawing, "h1 QP") - 4);
}

TEST(Ladder, DrawsAMulticastToEachQueuePairThatTakesIt) {
    constexpr std::int64_t kGroup = 0xFFFFFF;
    LadderOf of;
    of.add(0, 1, "object", "queue_pair", {{"qpn", kQp + 1}, text_field("service", "UD")});
    of.send(1, "SEND_ONLY", 100, kGroup);
    of.arrive(9, 100);
    of.deliver(9, kQp);
    of.deliver(9, kQp + 1);
    const Drawing drawing = of.drawing();
    const std::vector<DrawnLine> drawn = arrows(drawing);
    ASSERT_EQ(drawn.size(), 2U);
    EXPECT_NEAR(drawn[0].points.back().x, life_line(drawing, "h1 QP 0x11"), 8);
    EXPECT_NEAR(drawn[1].points.back().x, life_line(drawing, "h1 QP 0x12"), 8);
    EXPECT_FALSE(find_text(drawing, "0xffffff"));
}

TEST(Ladder, DrawsAMulticastThatNobodyTakes) {
    constexpr std::int64_t kGroup = 0xFFFFFF;
    LadderOf of;
    of.send(1, "SEND_ONLY", 100, kGroup);
    of.arrive(9, 100);
    of.discard(9, 100, "no such queue pair", kGroup);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "no such queue pair, lost at h1"));
    EXPECT_FALSE(find_text(drawing, "0xffffff"));
}

TEST(Ladder, DrawsBothCopiesOfADuplicatedPacket) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.arrive(9, 100);
    of.arrive(19, 100);
    const Drawing drawing = of.drawing();
    const std::vector<DrawnLine> drawn = arrows(drawing);
    ASSERT_EQ(drawn.size(), 2U);
    EXPECT_EQ(drawn[0].points.front().y, drawn[1].points.front().y);
    EXPECT_LT(drawn[0].points.back().y, drawn[1].points.back().y);
}

TEST(Ladder, LeavesOutCopiesThatASwitchFloodsToOtherStations) {
    LadderOf of;
    of.add(0, 2, "object", "node", {text_field("label", "h2"), text_field("kind", "hca")});
    of.send(0, "SEND_ONLY", 100);
    of.arrive(9, 100);
    of.add(9, 2, "packet", "frame_received",
           {{"port", 1}, {"source", 0}, {"flow", kQp}, {"frame", 100}});
    of.add(9, 2, "packet", "packet_discarded",
           {{"dest_qpn", kQp}, {"psn", 100}, text_field("fate", "for another station")});
    const Drawing drawing = of.drawing();
    EXPECT_EQ(arrows(drawing).size(), 1U);
    EXPECT_FALSE(find_text(drawing, "h2"));
}

TEST(Ladder, AUcMessageThatEndsACutOneIsTaken) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.arrive(9, 100);
    of.add(9, 1, "message", "dropped",
           {{"qpn", kQp}, {"psn", 100}, text_field("cause", "message cut on UC")});
    EXPECT_FALSE(find_text(of.drawing(), "a packet of the message is missing"));
}

TEST(Ladder, NotesEventsAndFaultsThatLoseNothing) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.add(0, 0, "fault", "fault_fired",
           {{"fault", 2}, text_field("action", "delay"), {"source", 0}, {"flow", kQp}});
    of.arrive(9, 100);
    of.send(10, "SEND_ONLY", 101);
    of.lose(11, 0, 101);
    of.add(12, 1, "async_event", "async_event",
           {text_field("event", "COMM_EST"), {"subject", kQp}});
    of.add(12, 1, "async_event", "async_event",
           {text_field("event", "PORT_ERR"), {"subject", kQp}});
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "fault 2: delay"));
    EXPECT_TRUE(find_text(drawing, "event: COMM_EST"));
    EXPECT_TRUE(find_text(drawing, "event: PORT_ERR of port 17"));
    const auto is_drop = [](const DrawnText& text) {
        return text.content.find("fault 3: drop") != std::string::npos;
    };
    EXPECT_EQ(std::count_if(drawing.texts.begin(), drawing.texts.end(), is_drop), 1)
        << "beside the cross";
}

TEST(Ladder, MarksAnEventOfAQueueOnTheQueuePairsThatUseIt) {
    LadderOf of;
    for (const std::int64_t qpn : {kQp + 1, kQp + 2}) {
        of.add(0, 1, "object", "queue_pair",
               {{"qpn", qpn}, text_field("service", "RC"), {"send_cq", 5}, {"receive_cq", 5}});
    }
    of.add(1, 1, "async_event", "async_event", {text_field("event", "CQ_ERR"), {"subject", 5}});
    const Drawing drawing = of.drawing();
    const auto text = find_text(drawing, "event: CQ_ERR of CQ 5");
    ASSERT_TRUE(text);
    EXPECT_NEAR(text->area.left, life_line(drawing, "h1 QP 0x12"), 16) << "not at QP 0x11";
}

TEST(Ladder, DrawsHostsThatHaveEventsAndNoQueuePair) {
    simverbs::viz::Trace trace;
    const auto add = [&trace](std::string category, std::string name, std::vector<Field> fields) {
        trace.records.push_back({.time = 7,
                                 .seq = trace.records.size(),
                                 .node = 1,
                                 .category = std::move(category),
                                 .name = std::move(name),
                                 .fields = std::move(fields)});
    };
    add("object", "node", {text_field("label", "h1"), text_field("kind", "hca")});
    add("fault", "fault_fired",
        {{"fault", 1}, text_field("action", "lid"), {"source", 1}, {"flow", 0}});
    add("async_event", "async_event", {text_field("event", "LID_CHANGE"), {"subject", 1}});
    const std::string svg =
        simverbs::viz::ladder(trace, simverbs::viz::read_run(trace), LadderOptions{});
    expect_readable(svg, "host");
    const Drawing drawing = read_drawing(svg);
    EXPECT_TRUE(find_text(drawing, "h1"));
    EXPECT_TRUE(find_text(drawing, "fault 1: lid"));
    EXPECT_TRUE(find_text(drawing, "event: LID_CHANGE of port 1"));
    EXPECT_FALSE(find_text(drawing, "no queue pair"));
}

TEST(Ladder, NotesLinksThatGoDownAndComeBack) {
    LadderOf of;
    of.add(1, 1, "state", "link_state", {text_field("link", "h1-s0"), text_field("to", "UP")});
    of.add(2, 1, "state", "link_state", {text_field("link", "h1-s0"), text_field("to", "DOWN")});
    of.send(3, "SEND_ONLY", 100);
    of.arrive(9, 100);
    of.add(10, 1, "state", "link_state", {text_field("link", "h1-s0"), text_field("to", "UP")});
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "link h1-s0 DOWN"));
    const auto is_up = [](const DrawnText& text) { return text.content == "link h1-s0 UP"; };
    EXPECT_EQ(std::ranges::count_if(drawing.texts, is_up), 1);
}

TEST(Ladder, TellsTimesThatLookAlikeByTheirDifference) {
    LadderOf of;
    of.send(335'564'000'000, "SEND_ONLY", 100);
    of.arrive(335'564'007'000, 100);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "335.564 ms"));
    EXPECT_TRUE(find_text(drawing, "+7 ns"));
}

// A move of the queue pairs of that number at both hosts.
void move(LadderOf& of, std::int64_t qpn, std::int64_t time) {
    for (const std::int64_t node : {0, 1}) {
        of.add(time, node, "object", "queue_pair", {{"qpn", qpn}, text_field("service", "RC")});
        of.add(time, node, "state", "qp_state",
               {{"qpn", qpn}, text_field("from", "RTR"), text_field("to", "RTS")});
    }
}

TEST(Ladder, DrawsConnectionsThatFollowEachOtherBelowEachOther) {
    LadderOf of;
    for (std::int64_t i = 0; i < 12; ++i) {
        move(of, kQp + i, i * kMicrosecond);
        move(of, kQp + i, i * kMicrosecond + 10);
    }
    const Drawing drawing = of.drawing();
    EXPECT_LT(drawing.width, 600);
    for (const std::string host : {"h0", "h1"}) {
        const std::string first = host + " QP 0x11";
        const std::string last = host + " QP 0x1c";
        ASSERT_TRUE(find_text(drawing, last));
        EXPECT_EQ(life_line(drawing, last), life_line(drawing, first)) << host;
        EXPECT_GT(find_text(drawing, last)->area.top, find_text(drawing, first)->area.bottom);
    }
    EXPECT_FALSE(find_text(drawing, "Left out"));
}

TEST(Ladder, DrawsConnectionsThatOverlapBesideEachOther) {
    LadderOf of;
    for (const std::int64_t time : {0, 1}) {
        move(of, kQp, time);
        move(of, kQp + 1, time);
    }
    const Drawing drawing = of.drawing();
    EXPECT_NE(life_line(drawing, "h0 QP 0x11"), life_line(drawing, "h0 QP 0x12"));
    EXPECT_EQ(find_text(drawing, "h0 QP 0x11")->area.top,
              find_text(drawing, "h0 QP 0x12")->area.top);
}

TEST(Ladder, DrawsARequestThatFailedBeforeAPacketLeft) {
    LadderOf of;
    move(of, kQp + 1, 0);
    of.add(0, 0, "completion", "completion",
           {{"qpn", kQp + 1}, text_field("opcode", "SEND"), text_field("status", "LOC_PROT_ERR")});
    of.send(kMicrosecond, "SEND_ONLY", 100);
    of.arrive(2 * kMicrosecond, 100);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "failed: SEND, request 0: LOC_PROT_ERR"));
    EXPECT_EQ(life_line(drawing, "h0 QP 0x12"), life_line(drawing, "h0 QP 0x11"));
    EXPECT_LT(find_text(drawing, "h0 QP 0x12")->area.bottom,
              find_text(drawing, "h0 QP 0x11")->area.top);
    EXPECT_FALSE(find_text(drawing, "h1 QP 0x12")) << "it did nothing";
}

TEST(Ladder, SetsConnectionsThatDoNotMeetApart) {
    LadderOf of;
    move(of, kQp + 1, 0);
    of.add(0, 0, "completion", "completion",
           {{"qpn", kQp + 1}, text_field("opcode", "SEND"), text_field("status", "LOC_PROT_ERR")});
    for (std::int64_t i = 2; i < 4; ++i) {
        move(of, kQp + i, i * kMicrosecond);
        for (const std::int64_t node : {0, 1}) {
            of.add(
                i * kMicrosecond, node, "completion", "completion",
                {{"qpn", kQp + i}, text_field("opcode", "SEND"), text_field("status", "SUCCESS")});
        }
    }
    const Drawing drawing = of.drawing();
    EXPECT_EQ(find_text(drawing, "h1 QP 0x13")->area.top,
              find_text(drawing, "h0 QP 0x13")->area.top);
    EXPECT_GT(find_text(drawing, "h1 QP 0x13")->area.top,
              find_text(drawing, "h0 QP 0x12")->area.bottom);
}

TEST(Ladder, SaysHowMuchIsLeftOutAndHowToGetIt) {
    LadderOf of;
    for (const std::int64_t time : {0, 1}) {
        for (std::int64_t i = 0; i < 12; ++i) {
            move(of, kQp + i, time);
        }
    }
    const Drawing drawing = of.drawing({.rows = 10});
    EXPECT_TRUE(find_text(drawing,
                          "The end is left out: 6 more rows. To draw all: simverbs viz "
                          "ladder TRACE --rows 16"));
    EXPECT_TRUE(find_text(drawing,
                          "Left out for want of room: 16 more queue pairs. To choose: "
                          "simverbs viz ladder TRACE --qp HOST:NUMBER"));
    EXPECT_FALSE(find_text(of.drawing(), "The end is left out"));
}

TEST(Ladder, SaysThatThereIsNoQueuePair) {
    const std::string svg = simverbs::viz::ladder({}, {}, {});
    expect_readable(svg, "empty");
    EXPECT_TRUE(find_text(read_drawing(svg), "The trace has no queue pair."));
}

TEST(Ladder, BreaksWhereSeveralFlightsPassAndNotWhereAPacketFlies) {
    LadderOf of;
    for (std::int64_t i = 0; i < 3; ++i) {
        of.send(i, "SEND_ONLY", 100 + i);
    }
    for (std::int64_t i = 0; i < 3; ++i) {
        of.arrive(1'100'000 + i, 100 + i);
    }
    of.send(11'200'000, "SEND_ONLY", 103);
    of.arrive(12'300'000, 103);
    const Drawing drawing = of.drawing();
    EXPECT_TRUE(find_text(drawing, "10.099 us pass"));
    EXPECT_FALSE(find_text(drawing, "1.099 us pass"));
}

TEST(Ladder, SaysWhichPeersOfTheChosenLinesAreNotDrawn) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.arrive(9, 100);
    const Drawing drawing = of.drawing({.qps = {{0, kQp}}});
    EXPECT_TRUE(find_text(drawing,
                          "Not drawn: 1 packet to or from queue pairs without a life line. To "
                          "draw them: add --qp h1:0x11"));
    EXPECT_FALSE(find_text(of.drawing(), "Not drawn"));
}

// REQ is lost, and sent again; an answer of the subnet administration is no message of the
// communication manager.
TEST(Ladder, DrawsMessagesOfTheCommunicationManager) {
    LadderOf of;
    const auto send = [&of](std::int64_t time, std::int64_t frame, std::int64_t management_class,
                            std::int64_t attribute) {
        of.add(time, 0, "packet", "datagram_sent",
               {{"qpn", 1},
                {"frame", frame},
                {"dest_qpn", 1},
                {"class", management_class},
                {"method", 3},
                {"attribute", attribute}});
    };
    const auto frame = [](std::int64_t number) {
        return std::vector<Field>{{"port", 1}, {"source", 0}, {"flow", 1}, {"frame", number}};
    };
    constexpr std::int64_t kCommunication = 7;
    constexpr std::int64_t kAdministration = 3;
    constexpr std::int64_t kReq = 0x10;
    send(0, 1, kAdministration, 0x35);
    send(1, 2, kCommunication, kReq);
    std::vector<Field> lost = frame(2);
    lost.push_back(text_field("reason", "fault"));
    of.add(2, 0, "packet", "frame_dropped", std::move(lost));
    send(3, 3, kCommunication, kReq);
    of.add(9, 1, "packet", "frame_received", frame(3));
    const Drawing drawing = of.drawing();
    EXPECT_EQ(arrows(drawing).size(), 2U);
    EXPECT_TRUE(find_text(drawing, "h0 GSI"));
    EXPECT_NEAR(arrows(drawing).back().points.back().x, life_line(drawing, "h1 GSI"), 8);
    EXPECT_TRUE(find_text(drawing, "CM_REQ"));
    EXPECT_FALSE(find_text(drawing, "PSN"));
}

TEST(Ladder, HasATitleWithItsTimes) {
    LadderOf of;
    of.send(kMicrosecond, "SEND_ONLY", 100);
    of.arrive(3 * kMicrosecond, 100);
    EXPECT_TRUE(find_text(of.drawing(), "Packets between queue pairs, 1 us to 3 us"));
}

TEST(Ladder, BreaksWhereNothingHappensForLong) {
    LadderOf of;
    of.send(0, "SEND_ONLY", 100);
    of.lose(1, 0, 100);
    of.send(67'108'864 * kMicrosecond / 1000, "SEND_ONLY", 101);
    of.arrive(67'108'964 * kMicrosecond / 1000, 101);
    EXPECT_TRUE(find_text(of.drawing(), "67.108 ms pass"));
}

}  // namespace
}  // namespace viz_test
