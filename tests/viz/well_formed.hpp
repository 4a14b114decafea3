// Checks that what a view wrote is what its format asks for.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace viz_test {

// "" where expat reads all of it as one XML document, else what is wrong and on which line.
std::string xml_error(const std::string& text);

// Returns what `dot` draws of several graphs in one input: a document each.
std::vector<std::string> split_svgs(const std::string& pictures);

// The contents of a timeline.
struct TimelineSeen {
    std::map<std::string, int> work;  // slices of work requests, by name
    std::size_t arrows = 0;           // of packets, from a track to a track
};
// Expects the Trace Event Format: what each phase must have, slices of a track that do not overlap,
// arrows with both ends, a name for each track.
TimelineSeen expect_trace_events(const std::string& text);

}  // namespace viz_test
