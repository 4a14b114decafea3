// Files that mean nothing: each says where, what, and what would be valid; none is a crash.
#include <ostream>

#include "tests/scenarios/scenario_text.hpp"

namespace scenarios {
namespace {

struct Case {
    const char* text;
    const char* says;
};

void PrintTo(const Case& one, std::ostream* out) {  // NOLINT(readability-identifier-naming)
    *out << one.text;
}

// clang-format off
constexpr Case kCases[] = {
    {"[1, 2]",
     "expected a mapping, found a list"},
    {"run: [",
     "test.yaml:1:"},
    {"just words",
     "expected a mapping"},
    {"a: 1\n---\nb: 2\n",
     "a second document"},
    {"rnu: {}",
     "unknown key \"rnu\": did you mean \"run\"?"},
    {"run: {}\nrun: {}\n",
     "\"run\" a second time"},
    {"programms: {}",
     "did you mean \"programs\"?"},
    {"faults: [{action: drop, when: {count: all}}]",
     "\"all\": expected a number from 1 on, or every"},
    {"faults: [{action: drop, when: {count: 0}}]",
     "\"0\": expected a number from 1 on, or every"},
    {"expect: {never: [{record: completions}]}",
     "did you mean \"completion\"?"},
    {"\"unclosed",
     "test.yaml:"},
    {"run: {sede: 1}",
     "did you mean \"seed\"?"},
    {"run: {seed: one}",
     "\"one\": expected a number"},
    {", run: {seed: 1}",
     "test.yaml:1:1: nothing begins with this character"},
    {"run: {seed: -1}",
     "expected a number"},
    {"run: {seed: [1]}",
     "expected a word or number, found a list"},
    {"run: {stop: 10}",
     "needs a unit"},
    {"run: {stop: 10 parsec}",
     "no unit of a duration is called \"parsec\""},
    {"run: {stop: 0s}",
     "expected more than nothing"},
    {"run: {stop: soon}",
     "expected a duration"},
    {"run: {schedule: free}\nhosts: {h0: {do: [{sleep: 1us}]}}",
     "free is for processes"},
    {"run: {order: 7}\nhosts: {h0: {do: [{sleep: 1us}]}}",
     "order: threads of a program take turns"},
    {"run: {order: 7}\nhosts: {h0: {run: ibv_devinfo}}",
     "order: threads of a program take turns"},
    {"fabric: fat-tree:18\nworkloads: {w: {all_to_all: {}}}",
     "1062153 connections: workloads may have 524288 in all"},
    {"fabric: star:700\nworkloads: {v: {all_to_all: {}}, w: {all_to_all: {}}, x: {all_to_all: {}}}",
     "2:59: 244650 connections: workloads may have 524288 in all, and 489300 came before"},
    {"workloads: {w: {key_value: {server: h1, clients: [h0, h0]}}}",
     "1:55: \"h0\" a second time"},
    {"run: {schedule: serial}",
     "valid: canonical, free"},
    {"run: {personality: connectx5}",
     "did you mean \"connectx6\"?"},
    {"run: {first_psn: 16777216}",
     "from 0 to 16777215"},
    {"run: {first_qpn: 65536}",
     "from 0 to 65535"},
    {"run: {keys: shuffled}",
     "valid: sequential, random"},
    {"run: 5",
     "expected a mapping"},
    {"fabric: star",
     "star"},
    {"fabric: star:1",
     "star"},
    {"fabric: galaxy:3",
     "galaxy"},
    {"fabric: {file: none.yaml}",
     "none.yaml"},
    {"fabric: {file: none.yaml, hosts: {}}",
     "unknown key \"hosts\""},
    {"fabric: {hosts: {a: , b: }, lnks: []}",
     "did you mean \"links\"?"},
    {"fabric: {hosts: {a: , b: }, links: [{ends: [a, c]}]}",
     "unknown node \"c\""},
    {"fabric: {hosts: {a: , b: }, links: [{ends: [a, b], latency: 5}]}",
     "needs a unit"},
    {"fabric: {hosts: {a: , b: }, links: [{ends: [a]}]}",
     "a link has two ends"},
    {"hosts: {h9: {}}",
     "unknown host \"h9\""},
    {"hosts: {h0: {doo: []}}",
     "unknown key \"doo\""},
    {"hosts: {h0: {do: {}}}",
     "expected a list, found a mapping"},
    {"hosts: [h0]",
     "expected a mapping, found a list"},
    {"hosts: {h0: {}, h0: {}}",
     "\"h0\" a second time"},
    {"hosts: {h0: {memory: {m: {size: 0}}}}",
     "expected a number from 1"},
    {"hosts: {h0: {memory: {m: {size: 3 lightyears}}}}",
     "no unit of a size"},
    {"hosts: {h0: {memory: {m: {size: 99GiB}}}}",
     "expected from"},
    {"hosts: {h0: {memory: {m: {access: [fly]}}}}",
     "valid: local_write"},
    {"hosts: {h0: {memory: {m: {access: local_write}}}}",
     "expected a list"},
    {"hosts: {h0: {memory: {m: {domain: mine}}}}",
     "valid: own, other"},
    {"hosts: {h0: {completion_queues: {q: {size: 0}}}}",
     "from 1 to"},
    {"hosts: {h0: {completion_queues: {q: {channel: maybe}}}}",
     "valid: true, false"},
    {"hosts: {h0: {shared_receives: {s: {size: 99999}}}}",
     "from 1 to 32768"},
    {"hosts: {h0: {windows: {w: {type: 3}}}}",
     "valid: 1, 2"},
    {"hosts: {h0: {work_queues: {w: {}}}}",
     "\"cq\" is missing"},
    {"hosts: {h0: {work_queues: {w: {cq: q}}}}",
     "unknown completion queue \"q\""},
    {"hosts: {h0: {work_queues: {w: {cq: q}}}, h1: {completion_queues: {q: {}}}}",
     "h0 has no \"q\""},
    {"programs: {p: {do: []}}",
     "\"host\" is missing"},
    {"programs: {p: {host: h0}}",
     "\"do\" is missing"},
    {"programs: {p: {host: h7, do: []}}",
     "unknown host \"h7\": did you mean"},
    {"connections: {c: {}}",
     "\"between\" is missing"},
    {"connections: {c: {between: [h0]}}",
     "between two different hosts"},
    {"connections: {c: {between: [h0, h0]}}",
     "between two different hosts"},
    {"connections: {c: {between: [h0, h1, h0]}}",
     "between two different hosts"},
    {"connections: {c: {between: [h0, h5]}}",
     "unknown host \"h5\""},
    {"connections: {c: {between: [h0, h1], type: RD}}",
     "valid: RC, UC, UD, XRC"},
    {"connections: {c: {between: [h0, h1], mtu: 1500}}",
     "valid: 256, 512, 1024, 2048, 4096"},
    {"connections: {c: {between: [h0, h1], timeout: 32}}",
     "from 0 to 31"},
    {"connections: {c: {between: [h0, h1], retries: 8}}",
     "from 0 to 7"},
    {"connections: {c: {between: [h0, h1], rnr_retrys: 1}}",
     "did you mean \"rnr_retries\"?"},
    {"connections: {c: {between: [h0, h1], ends: {h2: {}}}}",
     "unknown host \"h2\""},
    {"fabric: star:3\nconnections: {c: {between: [h0, h1], ends: {h2: {}}}}",
     "h2 is no end of this connection"},
    {"connections: {c: {between: [h0, h1], state: ERR}}",
     "valid: RESET, INIT, RTR, RTS"},
    {"connections: {c: {between: [h0, h1], srq: s}}",
     "unknown shared receive queue \"s\": there is none"},
    {"connections: {c: {between: [h0, h1], srq: s}}\nhosts: {h0: {shared_receives: {s:"
     " {}}}}",
     "h1 has no \"s\""},
    {"connections: {c: {between: [h0, h1], psn: 0x1G}}",
     "expected a number"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{sned: {qp: c}}]}}\n",
     "did you mean \"send\"?"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{}]}}\n",
     "expected one of"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c}, poll: {"
     "qp: c}}]}}\n",
     "found several"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [send]}}\n",
     "expected a mapping"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {}}]}}\n",
     "\"qp\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: d}}]}}\n",
     "unknown connection \"d\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, flags: ["
     "loud]}}]}}\n",
     "valid: unsignaled, fence, solicited, inline"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, memory: "
     "m}}]}}\n",
     "unknown memory \"m\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, lkey: ru"
     "sty}}]}}\n",
     "valid: good, bad, stale"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, count: 0"
     "}}]}}\n",
     "from 1 to"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, errno: E"
     "WHAT}}]}}\n",
     "\"EWHAT\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{send: {qp: c, length: "
     "1 B/s}}]}}\n",
     "no unit of a size"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{write: {qp: c, window:"
     " w}}]}}\n",
     "unknown memory window \"w\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {}}]}}\n",
     "poll: expected one queue; found 0"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c, cq: c}}]"
     "}}\n",
     "poll: expected one queue; found 2"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c, status: "
     "FINE}}]}}\n",
     "\"FINE\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c, status: "
     "RETRY_EXCERR}}]}}\n",
     "did you mean \"RETRY_EXC_ERR\"?"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c, opcode: "
     "SENT}}]}}\n",
     "did you mean \"SEND\"?"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{poll: {qp: c, within: "
     "5}}]}}\n",
     "needs a unit"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{receive: {id: 1}}]}}\n",
     "receive: expected one queue; found 0"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{sleep: long}]}}\n",
     "expected a duration"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{sleep: {}}]}}\n",
     "expected a word or number"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{loop: {do: []}}]}}\n",
     "\"times\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{loop: {times: 3, do: ["
     "{jump: 1}]}}]}}\n",
     "unknown key \"jump\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{parallel: {}}]}}\n",
     "expected a list"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{parallel: [[{poll: {}}"
     "]]}]}}\n",
     "poll: expected one queue"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{await: {event: QP_FATA"
     "LL}}]}}\n",
     "did you mean \"QP_FATAL\"?"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{await: {}}]}}\n",
     "\"event\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{modify: {qp: c, state:"
     " RTSS}}]}}\n",
     "\"RTSS\""},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{fill: {}}]}}\n",
     "\"pattern\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{inject: {}}]}}\n",
     "\"action\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{clear: nothing}]}}\n",
     "unknown fault \"nothing\""},
    {"fabric: star:3\nconnections: {c: {between: [h0, h1]}}\nhosts: {h2: {do: [{send: "
     "{qp: c}}]}}",
     "h2 has no end of \"c\""},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: dorp}]\n",
     "did you mean \"drop\"?"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{name: x}]\n",
     "\"action\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: link_down, link: h0-h1}"
     "]\n",
     "unknown link \"h0-h1\""},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {from: s0}}"
     "]\n",
     "unknown host \"s0\""},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {nth: 0}}]"
     "\n",
     "expected a number from 1"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {at: 5}}]\n",
     "needs a unit"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {qp: h0/d}}"
     "]\n",
     "unknown end (host/connection) \"h0/d\": did you mean \"h0/c\"?"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {direction:"
     " up}}]\n",
     "valid: either, requests, responses"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: drop, when: {after: lat"
     "er}}, {name: later, action: mark}]\n",
     "it must come first"},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{name: x, action: mark}, {name: "
     "x, action: mark}]\n",
     "a second fault \"x\""},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: rewrite, field: colour}"
     "]\n",
     "\"colour\""},
    {"connections: {c: {between: [h0, h1]}}\nfaults: [{action: completion, status: BAD"
     "}]\n",
     "\"BAD\""},
    {"faults: [{action: process_stop, node: h0}]\n",
     "process_stop: expected how long"},
    {"faults: [{action: process_stop, node: h0, duration: 0s}]\n",
     "process_stop: expected how long"},
    {"faults: [{action: process_stop, node: h9, duration: 1ms}]\n",
     "unknown node \"h9\""},
    {"faults: [{action: process_stop, node: s0, duration: 1ms}]\n",
     "expected the host of the programs: \"node: h0\""},
    {"faults: [{action: process_kill}]\n",
     "process_kill: expected the host of the programs"},
    {"connections: {c: {between: [h0, h1]}}\nhosts: {h0: {do: [{inject: {action: "
     "process_stop, node: h1}}]}}\n",
     "process_stop: expected how long"},
    {"faults: {action: drop}",
     "expected a list, found a mapping"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {completion: {}}\n",
     "did you mean \"completions\"?"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {completions: {h0: []}}\n",
     "unknown end (host/connection) \"h0\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {completions: {h0/c: {}}}\n",
     "expected a list"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {completions: {h0/c: [{state: ERR"
     "}]}}\n",
     "unknown key \"state\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {qp_states: {h0/c: DEAD}}\n",
     "valid: RESET"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {events: {h0: [LINK_DOWN]}}\n",
     "\"LINK_DOWN\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {events: {h3: []}}\n",
     "unknown host \"h3\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {counters: {h0: {packets: 1}}}\n",
     "unknown key \"packets\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {counters: {h0: {packets_sent: fe"
     "w}}}\n",
     "expected a number"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {fired: {none: 1}}\n",
     "unknown fault \"none\""},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {memory: [{at: 0}]}\n",
     "\"host\" is missing"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {time: {at_most: 5}}\n",
     "needs a unit"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {never: {status: SUCCESS}}\n",
     "expected a list"},
    {"connections: {c: {between: [h0, h1]}}\nexpect: {invariants: {in_order: perhaps}}"
     "\n",
     "valid: true, false"},
    {"workloads: {w: {ping: {}}}",
     "unknown key \"ping\""},
    {"workloads: {w: {}}",
     "expected one of ping_pong, stream, all_to_all, incast, key_value"},
    {"workloads: {w: {stream: {from: h0}}}",
     "\"to\" is missing"},
    {"workloads: {w: {stream: {from: h0, to: h1, messages: many}}}",
     "expected a number"},
    {"defaults: {conection: {}}",
     "did you mean \"connection\"?"},
    {"defaults: {connection: {between: [h0, h1]}}",
     "unknown key \"between\""},
    {"include: base.yaml",
     "test.yaml:1:10: expected a list of files: include: [base.yaml]"},
    {"hosts: {h\xff: {}}",
     "test.yaml:1:10: the byte 0xff is no UTF-8"},
    {"# \u00e4 \u20ac \U0001F600\n\u00e4: {\xed\xa0\x80: }",  // half of a surrogate pair
     "test.yaml:2:5: the byte 0xed is no UTF-8"},
    {"a: \xc0\xaf",  // a slash in two bytes
     "test.yaml:1:4: the byte 0xc0 is no UTF-8"},
    {"a: \xe2\x82",
     "test.yaml:1:4: the byte 0xe2 is no UTF-8"},
};
// clang-format on
static_assert(std::size(kCases) >= 100);

class Malformed : public ::testing::TestWithParam<Case> {};

TEST_P(Malformed, IsRefusedWithAReason) {
    const std::string errors = errors_of(GetParam().text);
    EXPECT_NE(errors.find(GetParam().says), std::string::npos) << errors;
    EXPECT_TRUE(errors.starts_with("test.yaml:")) << errors;
}

INSTANTIATE_TEST_SUITE_P(Scenario, Malformed, ::testing::ValuesIn(kCases));

// A file cut anywhere, and one with a byte changed, is a scenario or has errors.
TEST(Damaged, IsReadOrRefused) {
    const std::string whole = R"(
run: {seed: 1, stop: 10s}
fabric: {generator: "star:3", links: [{ends: [h0, s0], latency: 1us}]}
connections: {c: {between: [h0, h1], ends: {h0: {mtu: 256}}}}
hosts: {h0: {memory: {m: {size: 4KiB}}, do: [{send: {qp: c, memory: m}}, {poll: {qp: c}}]}}
workloads: {w: {ping_pong: {between: [h0, h2], messages: 2}}}
faults: [{name: f, action: drop, when: {from: h0, chance: 1/10}}]
expect: {completions: {h0/c: [{id: 0}]}, memory: [{host: h0, memory: m, untouched: true}]}
)";
    ASSERT_EQ(errors_of(whole), "");
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const std::string cut = errors_of(whole.substr(0, i));
        EXPECT_TRUE(cut.empty() || cut.starts_with("test.yaml:")) << cut;
        for (const char c : {'{', '}', ':', '-', 'x', '\n', '\0', '\xFF'}) {
            std::string changed = whole;
            changed[i] = c;
            const std::string errors = errors_of(changed);
            EXPECT_TRUE(errors.empty() || errors.starts_with("test.yaml:")) << errors;
        }
    }
}

}  // namespace
}  // namespace scenarios
