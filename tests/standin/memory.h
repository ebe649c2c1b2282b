// Blocks as the functions that allocate and free see them.
#pragma once

#include "state.h"

namespace standin {

// A block at an address of its own, filled with bytes that no kernel wrote.
Block& new_block(size_t size, int device);
// Checks the guards, poisons the block and keeps it in quarantine.
void free_block(Block& block);

}  // namespace standin
