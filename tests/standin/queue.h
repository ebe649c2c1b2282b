// Streams as the stand-in's own sources see them.
#pragma once

#include <deque>

#include "state.h"

namespace standin {

struct Stream {
    int device;
    void* handle = nullptr;
    // Whether this stream and the device's default stream wait for each other.
    bool waits_for_default = false;
    std::deque<Operation> waiting;
    uint64_t given = 0, done = 0;
};

// Marks the device as lost. Waits end, and pending operations never run.
void lose(Lock& lock, int code);
// Restarts the numbers of `draw` from the seed.
void restart_draws();
// Requires that the stream finishes its queued operations before the next call of this thread.
void must_be_waited_for(const std::shared_ptr<Stream>& stream, size_t bytes);
// Runs one operation of a stream, if one can run.
void poll(Lock& lock, const std::shared_ptr<Stream>& stream);
// Waits until an event has reached its last record.
int wait_for_event(Lock& lock, const std::shared_ptr<Event>& event);

}  // namespace standin
