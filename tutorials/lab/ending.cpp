#include "tutorials/lab/ending.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "tutorials/lab/attempt.hpp"
#include "tutorials/lab/exercise.hpp"

namespace simverbs::lab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFault = "Fatal Python error:";
constexpr std::string_view kTraceback = "Traceback (most recent call last):";
constexpr std::uint64_t kFirstPage = 4096;
constexpr std::size_t kMostCallers = 5;

struct Notes {
    bool null_touched = false;
    std::vector<std::string> addresses;  // innermost first
};

Notes read_notes(const std::string& file) {
    Notes notes;
    std::ifstream in(file);
    for (std::string word, number; in >> word >> number;) {
        if (word == "at") {
            notes.addresses.push_back("0x" + number);
        } else if (word == "address") {
            std::uint64_t address = 0;
            std::from_chars(number.data(), number.data() + number.size(), address, 16);
            notes.null_touched = address < kFirstPage;
        } else if (!notes.addresses.empty()) {
            break;  // exit() within the handler of a crash, or the other way round
        }
    }
    return notes;
}

struct Frame {
    std::string function;
    std::string file;
    unsigned line = 0;
};

// A pair of lines each: the function, "file:line".
std::vector<Frame> frames_of(const std::vector<std::string>& addresses,
                             const std::string& program) {
    std::vector<std::string> words{"addr2line", "-f", "-e", program};
    words.insert(words.end(), addresses.begin(), addresses.end());
    std::istringstream lines(run({.words = words}).output);
    std::vector<Frame> frames;
    for (std::string function, place;
         std::getline(lines, function) && std::getline(lines, place);) {
        const std::size_t colon = place.rfind(':');
        unsigned line = 0;
        if (colon != std::string::npos) {
            std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
        }
        if (line > 0) {
            frames.push_back({function, place.substr(0, colon), line});
        }
    }
    return frames;
}

// verbs.h has inline functions behind some of its macros: "___ibv_query_port".
std::string name_of_verb(const std::string& function) {
    const std::size_t begin = function.find_first_not_of('_');
    const bool is_verb = begin != std::string::npos && function.compare(begin, 4, "ibv_") == 0;
    return is_verb ? function.substr(begin) : function;
}

// The first frame of the answer itself; what it called there is the one before.
std::optional<Place> place_among(const std::vector<Frame>& frames, const std::string& source) {
    const auto own = std::find_if(frames.begin(), frames.end(),
                                  [&source](const Frame& frame) { return frame.file == source; });
    if (own == frames.end()) {
        return std::nullopt;
    }
    Place place{fs::path(source).filename().string(), own->line, own->function};
    if (own != frames.begin()) {
        place.called = name_of_verb(std::prev(own)->function);
    }
    for (auto outer = std::next(own); outer != frames.end(); ++outer) {
        if (outer->file == source && place.callers.size() < kMostCallers) {
            place.callers.push_back({outer->function, outer->line});
        }
    }
    return place;
}

// `  File "/a/exercise.py", line 12, in show`; faulthandler leaves out the last comma.
std::optional<Frame> python_frame(std::string_view line) {
    constexpr std::string_view kFile = "  File \"";
    constexpr std::string_view kLine = "\", line ";
    constexpr std::string_view kIn = " in ";
    const std::size_t end = line.find(kLine);
    if (!line.starts_with(kFile) || end == std::string_view::npos) {
        return std::nullopt;
    }
    Frame frame{.file = std::string(line.substr(kFile.size(), end - kFile.size()))};
    const std::string_view rest = line.substr(end + kLine.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
    const std::size_t in = rest.find(kIn);
    if (in != std::string_view::npos && !rest.ends_with("<module>")) {
        frame.function = rest.substr(in + kIn.size());
    }
    return frame;
}

std::vector<Frame> python_frames(std::string_view text) {
    std::vector<Frame> frames;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        if (auto frame = python_frame(line)) {
            frames.push_back(std::move(*frame));
        }
    }
    return frames;
}

}  // namespace

std::string text_of(const Place& place) {
    const bool tells_call = !place.called.empty() && place.called != "must";
    return fmt::format("{} line {}{}{}", place.file, place.line,
                       place.function.empty() ? "" : fmt::format(", in {}()", place.function),
                       tells_call ? fmt::format(", in its call of {}()", place.called) : "");
}

std::string callers_of(const Place& place) {
    std::string text;
    for (const Call& call : place.callers) {
        text += fmt::format(
            "{}{}line {}", text.empty() ? ", called " : ", ",
            call.function.empty() ? "in " : fmt::format("by {}() in ", call.function), call.line);
    }
    return text;
}

std::optional<Place> place_in_c(const std::string& notes_file, const std::string& program,
                                const std::string& source) {
    const Notes notes = read_notes(notes_file);
    if (notes.addresses.empty()) {
        return std::nullopt;
    }
    auto place = place_among(frames_of(notes.addresses, program), source);
    if (place) {
        place->null_touched = notes.null_touched;
    }
    return place;
}

std::string line_of_second_end(std::string_view errors) {
    std::istringstream lines{std::string(errors)};
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("simverbs: destroyed_twice:")) {
            return line;
        }
    }
    return "";
}

std::optional<Place> place_of_second_end(std::string_view errors, const std::string& program,
                                         const std::string& source) {
    const std::string line = line_of_second_end(errors);
    const std::string caller = "; called from " + program + "+";
    const std::size_t at = line.rfind(caller);
    if (line.empty() || at == std::string::npos) {
        return std::nullopt;
    }
    const std::vector<Frame> frames = frames_of({line.substr(at + caller.size())}, program);
    return place_among(frames, source);
}

std::optional<Place> place_in_python(const std::string& notes, std::string_view errors,
                                     const std::string& source) {
    const std::size_t fault = errors.find(kFault);
    if (fault != std::string_view::npos) {  // innermost first
        return place_among(python_frames(errors.substr(fault)), source);
    }
    const std::size_t traceback = errors.rfind(kTraceback);
    if (traceback == std::string_view::npos) {
        return place_among(python_frames(read_file(notes).value_or("")), source);
    }
    std::vector<Frame> frames = python_frames(errors.substr(traceback));
    std::reverse(frames.begin(), frames.end());
    return place_among(frames, source);
}

std::string without_frames_of_lab(std::string_view errors) {
    std::string kept;
    std::istringstream lines{std::string(errors)};
    bool is_of_lab = false;
    for (std::string line; std::getline(lines, line);) {
        const auto frame = python_frame(line);
        is_of_lab = frame ? frame->file.ends_with("/python/sitecustomize.py")
                          : is_of_lab && line.starts_with("    ");
        kept += is_of_lab ? "" : line + "\n";
    }
    return kept;
}

std::string without_ignored_exceptions(std::string_view errors, std::vector<std::string>& ignored) {
    std::string kept;
    std::istringstream lines{std::string(errors)};
    bool is_ignored = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("Exception ignored in")) {
            is_ignored = true;
        } else if (is_ignored && !line.starts_with(' ') && line != kTraceback) {
            ignored.push_back(line);
            is_ignored = false;
        } else if (!is_ignored) {
            kept += line + "\n";
        }
    }
    return kept;
}

std::string exception_of(std::string_view errors) {
    const std::size_t traceback = errors.rfind(kTraceback);
    if (traceback == std::string_view::npos) {
        return "";
    }
    std::istringstream lines{std::string(errors.substr(traceback + kTraceback.size()))};
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty() && !line.starts_with(' ')) {
            return line;
        }
    }
    return "";
}

bool is_syntax_error(std::string_view errors) {
    if (errors.find(kTraceback) != std::string_view::npos) {
        return false;
    }
    constexpr std::array<std::string_view, 3> kNames = {
        "\nSyntaxError: ", "\nIndentationError: ", "\nTabError: "};
    return std::any_of(kNames.begin(), kNames.end(), [errors](std::string_view name) {
        return errors.find(name) != std::string_view::npos;
    });
}

Ending ending_of_python(const Ending& ending, std::string_view errors) {
    const std::string exception = exception_of(errors);
    const std::string type = exception.substr(0, exception.find(':'));
    const bool is_refusal = type.find("Pyverbs") != std::string::npos;
    if (ending.kind != Ending::Kind::kExited || ending.number == 0 || type.empty() || is_refusal) {
        return ending;
    }
    return {Ending::Kind::kException, ending.number};
}

std::string_view without_fault_report(std::string_view errors) {
    return errors.substr(0, errors.find(kFault));
}

}  // namespace simverbs::lab
