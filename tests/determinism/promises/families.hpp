// Programs that start others. Each process has a world of its own, or all are of one host of a
// served world.
#pragma once

namespace promises {

void forks();
void forks_at_any_time();  // processes that compute before their first verb
void spawns();
void starts_by_a_shell();
void alone();  // what the last two start

}  // namespace promises
