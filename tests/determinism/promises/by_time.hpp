// Programs of `programs` whose threads sleep, wait for signals, or read the clock.
#pragma once

namespace promises {

void epoll_without_limit();
void poll_with_limit();
void naps();
void short_naps();
void timers();
void one_timer();
void signals();
void one_signal();
void time_limit();
void for_a_while();
void how_long_it_took();

}  // namespace promises
