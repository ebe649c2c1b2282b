// Streams as the stand-in's own sources see them.
#pragma once

#include <deque>

#include "state.h"

namespace standin {

struct Stream {
    int device;
    void* handle = nullptr;
    // Whether it and the device's default stream wait for each other.
    bool waits_for_default = false;
    std::deque<Operation> waiting;
    uint64_t given = 0, done = 0;
};

// The device is lost: waits end, and what was not done is not done any more.
void lose(Lock& lock, int code);
// Begins the numbers of `draw` anew, by the seed.
void restart_draws();
// The next call of this thread must not come before the stream has done what it was given.
void must_be_waited_for(const std::shared_ptr<Stream>& stream, size_t bytes);
// Runs one operation of a stream, where there is one that can run.
void poll(Lock& lock, const std::shared_ptr<Stream>& stream);
// Waits until an event has reached its last record.
int wait_for_event(Lock& lock, const std::shared_ptr<Event>& event);

}  // namespace standin
