// The page of fault actions: what each is done to, what it waits for, which members it reads.
#pragma once

#include <string>

namespace simverbs::atlas {

std::string print_fault_actions();

}  // namespace simverbs::atlas
