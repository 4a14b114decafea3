// A report in a headless Chromium: a script of ours plays the reader. Skipped where there is none.
#include "viz/report.hpp"

#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "recorded_run.hpp"

namespace viz_test {
namespace {

using simverbs::viz::Field;
using simverbs::viz::Record;
using simverbs::viz::Trace;

// Filters, zooms, chooses a completion by mouse and by key, scrolls; and says what it saw.
constexpr const char* kReader = R"(
<pre id="seen"></pre><script>
const say = text => { document.getElementById('seen').textContent += text + '\n'; };
window.addEventListener('error', event => say('ERROR ' + event.message));
const put = (id, value) => {
  const element = document.getElementById(id);
  if (element.type === 'checkbox') { element.checked = value; } else { element.value = value; }
  element.dispatchEvent(new Event('input'));
};
say('events ' + document.getElementById('events-count').textContent);
say('rows ' + (document.querySelectorAll('#events .row').length < 60));
const list = document.getElementById('events');
const begin = performance.now();
let slowest = 0;
for (let step = 0; step < 200; step++) {
  const before = performance.now();
  list.scrollTop = list.scrollHeight * step / 200;
  eventList.draw();
  list.getBoundingClientRect();
  slowest = Math.max(slowest, performance.now() - before);
}
say('stalls ' + (slowest > 500));
list.focus();
list.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true}));
say('last ' + (document.querySelector('#events .current').getAttribute('aria-posinset') ==
  document.querySelector('#events .current').getAttribute('aria-setsize')));
put('events-category', 'completion');
put('completions-failed', true);
document.querySelector('#completions .row').click();
say('why ' + document.getElementById('explanation').textContent);
const tall = document.querySelector('#ladder > div').style.height;
document.getElementById('zoom-in').click();
say('zoomed ' + (document.querySelector('#ladder > div').style.height !== tall));
const before = rows.length;
put('ladder-packets', true);
say('opened ' + (rows.length > before));
put('ladder-packets', false);
put('completions-filter', 'no such word');
say('short ' + (document.getElementById('completions').clientHeight < 60));
put('ladder-trouble', true);
say('trouble ' + document.getElementById('ladder-count').textContent);
say('end');
</script></body>)";

std::string seen_by_reader(std::string page, const std::string& path) {
    const std::size_t end = page.rfind("</body>");
    page.replace(end, 7, kReader);
    std::ofstream(path) << page;
    const Output output = run_program(
        "timeout 100 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr "
        "--dump-dom 'file://" +
        path + "' 2>&1");
    EXPECT_EQ(output.text.find("CONSOLE"), std::string::npos) << "an error on the console";
    const std::size_t from = output.text.find("<pre id=\"seen\">");
    return from == std::string::npos
               ? output.text.substr(0, 2000)
               : output.text.substr(from, output.text.find("</pre>", from) - from);
}

bool has_chromium() {
    return run_program("chromium --version 2>/dev/null").status == 0;
}

class Report : public RecordedRun {};

TEST_F(Report, IsReadFilteredZoomedAndExplains) {
    open_trace();
    reliable_traffic();
    close_trace();
    const std::string page = simverbs::viz::report(trace(), "a run");
    EXPECT_EQ(page.find("http:"), page.find("http://www.w3.org")) << "names of formats alone";
    EXPECT_EQ(page.find("src="), std::string::npos);
    EXPECT_NE(page.find("1 work request failed."), std::string::npos);
    EXPECT_NE(page.find("<b>REM_ACCESS_ERR</b>: h0 QP"), std::string::npos) << "without a click";
    EXPECT_EQ(page.find("The trace is large"), std::string::npos);
    if (!has_chromium()) {
        GTEST_SKIP() << "no chromium";
    }
    const std::string seen = seen_by_reader(page, file(".html"));
    EXPECT_EQ(seen.find("ERROR"), std::string::npos) << seen;
    EXPECT_NE(seen.find("REM_ACCESS_ERR"), std::string::npos) << seen;
    EXPECT_NE(seen.find("Why: "), std::string::npos) << seen;
    EXPECT_NE(seen.find("zoomed true"), std::string::npos) << seen;
    EXPECT_NE(seen.find("opened true"), std::string::npos) << seen;
    EXPECT_NE(seen.find("short true"), std::string::npos) << seen;
    EXPECT_NE(seen.find("last true"), std::string::npos) << seen;
    EXPECT_NE(seen.find("\nend"), std::string::npos) << seen;
}

TEST_F(Report, OfAHundredThousandEventsScrollsWithoutStalling) {
    Trace trace;
    constexpr std::uint64_t kEvents = 100'000;
    for (std::uint64_t i = 0; i < kEvents; ++i) {
        Record record{.time = static_cast<std::int64_t>(i) * 1000, .seq = i, .node = 0};
        record.category = i % 2 == 0 ? "completion" : "packet";
        record.name = i % 2 == 0 ? "completion" : "packet_sent";
        record.fields = {{"qpn", 65537},
                         {"frame", static_cast<std::int64_t>(i)},
                         {"index", static_cast<std::int64_t>(i / 2)},
                         {"opcode", 0, i % 2 == 0 ? "SEND" : "SEND_ONLY", true},
                         {"bth_opcode", 4},
                         {"status", 0, i == 40'000 ? "RETRY_EXC_ERR" : "SUCCESS", true}};
        trace.records.push_back(std::move(record));
    }
    const std::string page = simverbs::viz::report(trace, "many");
    EXPECT_LT(page.size(), 5'000'000U);
    EXPECT_NE(page.find("The trace is large"), std::string::npos);
    if (!has_chromium()) {
        GTEST_SKIP() << "no chromium";
    }
    const std::string seen = seen_by_reader(page, file(".html"));
    EXPECT_NE(seen.find(" of 100000"), std::string::npos) << seen;
    EXPECT_NE(seen.find("rows true"), std::string::npos) << seen;
    EXPECT_NE(seen.find("stalls false"), std::string::npos) << seen;
    EXPECT_NE(seen.find("RETRY_EXC_ERR"), std::string::npos) << seen;
    EXPECT_NE(seen.find("\nend"), std::string::npos) << seen;
}

// A trace of completions that all succeeded, and of what was lost and sent again on the way.
TEST(ReportText, SaysHowMuchWasLostAndSentAgain) {
    Trace trace;
    const auto add = [&trace](std::string name, std::vector<Field> fields) {
        Record record{.time = 1000, .seq = trace.records.size(), .node = 0};
        record.category = name == "completion" ? "completion" : "packet";
        record.name = std::move(name);
        record.fields = std::move(fields);
        trace.records.push_back(std::move(record));
    };
    const auto sent = [&add](std::int64_t frame, std::int64_t again) {
        add("packet_sent", {{"qpn", 17},
                            {"frame", frame},
                            {"bth_opcode", 4},
                            {"opcode", 0, "SEND_ONLY", true},
                            {"retransmission", again}});
    };
    sent(1, 0);
    add("frame_dropped", {{"source", 0}, {"flow", 17}, {"frame", 1}, {"reason", 0, "fault", true}});
    sent(2, 1);
    add("completion", {{"qpn", 17}, {"opcode", 0, "SEND", true}, {"status", 0, "SUCCESS", true}});
    const std::string page = simverbs::viz::report(trace, "a run");
    EXPECT_NE(page.find("Everything that completed has succeeded. 1 packet was lost. 1 packet was "
                        "sent again."),
              std::string::npos);
    EXPECT_NE(page.find("<h2>Timeline</h2>"), std::string::npos);
    EXPECT_EQ(page.find("warning, listed"), std::string::npos);
    EXPECT_EQ(page.find("<ul class=\"warnings\">"), std::string::npos);
}

TEST(ReportText, ListsItsWarnings) {
    Trace trace;
    const auto add = [&trace](std::string category, std::string name, std::vector<Field> fields) {
        trace.records.push_back({.time = 1000,
                                 .seq = trace.records.size(),
                                 .node = 0,
                                 .category = std::move(category),
                                 .name = std::move(name),
                                 .fields = std::move(fields)});
    };
    add("object", "node", {{"label", 0, "h0", true}, {"kind", 0, "hca", true}});
    add("object", "queue_pair", {{"qpn", 17}, {"service", 0, "RC", true}});
    add("warning", "misuse", {{"misuse", 0, "no_receive_at_rtr", true}, {"subject", 17}});
    add("warning", "misuse", {{"misuse", 0, "no_receive_at_rtr", true}, {"subject", 17}});
    add("warning", "credit_loop", {{"ports", 0, "s0 port 1 > s1 port 2", true}});
    const std::string page = simverbs::viz::report(trace, "a run");
    EXPECT_NE(page.find("No work request completed. The trace has 3 warnings, listed here."),
              std::string::npos);
    EXPECT_NE(page.find("<li><b>no_receive_at_rtr</b> (2 times): no receive is posted as the queue "
                        "pair enters RTR: the peer&#39;s first send may wait or fail. The first "
                        "came at 1 ns, h0 QP 0x11.</li>"),
              std::string::npos)
        << page.substr(page.find("warnings\">"), 400);
    EXPECT_NE(page.find("<li><b>credit_loop</b>: frames wait for each other&#39;s buffers, for "
                        "ever: s0 port 1 &gt; s1 port 2. It came at 1 ns, h0.</li>"),
              std::string::npos)
        << page.substr(page.find("warnings\">"), 400);
}

}  // namespace
}  // namespace viz_test
