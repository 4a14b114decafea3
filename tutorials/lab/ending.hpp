// How a program ended, and where: the line of a crash, of exit(), or of an endless loop when it was
// stopped. The line of a C program needs its debug information and addr2line; without them there
// is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simverbs::lab {

struct Ending {
    enum class Kind : std::uint8_t {
        kExited,
        kKilledBySignal,
        kException,         // of Python, that nobody caught; not that a verb was refused
        kTimedOut,          // stopped, its time was used up
        kStuck,             // likewise and it waited, or simverbs said that nothing is left to come
        kAsleep,            // likewise, in sleep() or its like
        kInterrupted,       // stopped, since whoever asked for the run wants no more of it
        kNotStarted,        // the system refused
        kKilledSupervisor,  // its parent, and itself with that
    };
    Kind kind = Kind::kExited;
    int number = 0;  // exit status, signal, or errno where it was not started

    [[nodiscard]] bool is_good() const { return kind == Kind::kExited && number == 0; }
};

// Returns the line that names an object destroyed a second time; "" where there was none.
std::string line_of_second_end(std::string_view errors);

struct Call {
    std::string function;  // "" outside of any
    unsigned line = 0;
};

// A line of the student's file.
struct Place {
    std::string file;  // without its folder
    unsigned line = 0;
    std::string function;       // "" outside of any
    std::string called;         // a function of lab.h or lab.py that was called there, or ""
    std::vector<Call> callers;  // of `function`, in the answer, innermost first
    bool null_touched = false;  // a null pointer, or a member of one
};

// "exercise.c line 12, in main()".
std::string text_of(const Place& place);
// ", called by show() in line 20, by main() in line 30"; "" where nothing of the answer called it.
std::string callers_of(const Place& place);

// `notes` is the file that lab_ending.c wrote, `source` the answer.
std::optional<Place> place_in_c(const std::string& notes, const std::string& program,
                                const std::string& source);

// The line of the answer that destroyed an object a second time, by what simverbs says of it;
// nothing where none did, or where lab.h did it for the answer.
std::optional<Place> place_of_second_end(std::string_view errors, const std::string& program,
                                         const std::string& source);

// From a traceback or what faulthandler says on stderr, else from the file `notes`, into which
// lab.py says where it gave up.
std::optional<Place> place_in_python(const std::string& notes, std::string_view errors,
                                     const std::string& source);

// Leaves out of tracebacks what stands between an answer in Python and pyverbs in a check alone.
std::string without_frames_of_lab(std::string_view errors);

// stderr without the exceptions that Python says it ignored, as those of a destructor: they end no
// program. Appends to `ignored` the last line of each.
std::string without_ignored_exceptions(std::string_view errors, std::vector<std::string>& ignored);

// The last line of a traceback, "TypeError: ..."; "" when there is none.
std::string exception_of(std::string_view errors);

// Returns true if Python did not even begin, since the answer is not Python.
bool is_syntax_error(std::string_view errors);

// That of a program in Python: kException where it ended by one. pyverbs raises its own when a verb
// is refused, which ends a program early as must() does.
Ending ending_of_python(const Ending& ending, std::string_view errors);

// stderr without what Python's faulthandler adds when it is told to say where it is.
std::string_view without_fault_report(std::string_view errors);

}  // namespace simverbs::lab
