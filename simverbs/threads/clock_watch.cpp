#include "simverbs/threads/clock_watch.hpp"

namespace simverbs {

constinit thread_local ClockWatch t_clock_watch;

}  // namespace simverbs
