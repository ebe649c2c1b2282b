// Streams and events. One executor thread runs all operations, and only while a call waits. An operation for which no call
// waits has not run.
#include "queue.h"

#include <chrono>
#include <condition_variable>
#include <thread>

namespace standin {

namespace {

// A stream with more operations waits until half of these are done.
const size_t LONG = 1000;

struct Demand {
    std::shared_ptr<Stream> stream;
    uint64_t target;
};

std::vector<Demand*>& demands = *new std::vector<Demand*>;
std::vector<std::shared_ptr<Stream>>& streams = *new std::vector<std::shared_ptr<Stream>>;
std::condition_variable& work = *new std::condition_variable;
std::condition_variable& progress = *new std::condition_variable;
// `CU_STREAM_LEGACY`, the default stream, and `CU_STREAM_PER_THREAD`.
void* const LEGACY = reinterpret_cast<void*>(1);
void* const PER_THREAD = reinterpret_cast<void*>(2);
bool has_begun = false;
uint64_t drawn = 0;

bool is_ready(const Stream& stream) {
    if (stream.waiting.empty()) return false;
    const Operation& next = stream.waiting.front();
    return !next.event || next.event->reached >= next.record;
}

// Returns the stream that must run next so that `stream` can: often `stream` itself; null if none can run.
std::shared_ptr<Stream> leader(std::shared_ptr<Stream> stream) {
    for (size_t steps = 0; stream && steps <= streams.size(); steps++) {
        if (is_ready(*stream)) return stream;
        if (stream->waiting.empty()) return nullptr;
        stream = stream->waiting.front().event->stream;
    }
    return nullptr;
}

// Usually chooses a stream that a call waits for, and sometimes another stream that can run.
std::shared_ptr<Stream> choose() {
    std::shared_ptr<Stream> chosen;
    for (Demand* each : demands)
        if (each->stream->done < each->target && (chosen = leader(each->stream))) break;
    if (!chosen || streams.size() < 2 || draw() % 4) return chosen;
    const std::shared_ptr<Stream>& other = streams[draw() % streams.size()];
    return is_ready(*other) ? other : chosen;
}

void run_next(Lock& lock, const std::shared_ptr<Stream>& stream) {
    Operation next = std::move(stream->waiting.front());
    stream->waiting.pop_front();
    if (!state().lost || next.bookkeeping) next.run(lock);
    stream->done++;
    progress.notify_all();
}

void execute() {
    Lock lock(state().mutex);
    for (;;) {
        std::shared_ptr<Stream> stream = choose();
        if (stream) run_next(lock, stream);
        else work.wait(lock);
    }
}

void reach(Lock& lock, const std::shared_ptr<Stream>& stream, uint64_t target) {
    if (stream->done >= target) return;
    if (!has_begun) {
        std::thread(execute).detach();
        has_begun = true;
    }
    Demand demand{stream, target};
    demands.push_back(&demand);
    work.notify_one();
    progress.wait(lock, [&] { return stream->done >= target; });
    for (size_t i = 0; i < demands.size(); i++)
        if (demands[i] == &demand) demands.erase(demands.begin() + i--);
}

}  // namespace

uint64_t draw() {
    // SplitMix64.
    uint64_t x = state().config.seed + ++drawn * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

void restart_draws() { drawn = 0; }

void lose(Lock&, int code) { state().lost = code; }

uint64_t given(const std::shared_ptr<Stream>& stream) { return stream->given; }
uint64_t done(const std::shared_ptr<Stream>& stream) { return stream->done; }

static bool is_default(const void* handle) { return handle == LEGACY || handle == PER_THREAD; }

// The default stream of the current device, or of the calling thread. Creates it at its first use.
static std::shared_ptr<Stream> default_stream(const void* handle) {
    static std::map<int, std::shared_ptr<Stream>>& legacy = *new std::map<int, std::shared_ptr<Stream>>;
    thread_local std::map<int, std::shared_ptr<Stream>> own;
    auto& stream = (handle == LEGACY ? legacy : own)[current_device()];
    if (!stream) {
        stream = std::make_shared<Stream>();
        stream->device = current_device();
        stream->handle = const_cast<void*>(handle);
        stream->waits_for_default = handle == PER_THREAD;
        streams.push_back(stream);
    }
    return stream;
}

std::shared_ptr<Stream> find_stream(const void* handle) {
    auto stream = is_default(handle) ? default_stream(handle) : state().streams.find(handle);
    if (!stream) {
        report("a call has the stream %p, which is null or does not exist", handle);
        return nullptr;
    }
    if (stream->device == current_device()) return stream;
    report("a call uses a stream of device %d while device %d is current", stream->device, current_device());
    return nullptr;
}

static void append(Stream& stream, Operation operation) {
    stream.waiting.push_back(std::move(operation));
    stream.given++;
}

// Makes all later work of stream `later` wait for the queued work of stream `earlier`.
static void order(const std::shared_ptr<Stream>& earlier, Stream& later) {
    if (earlier->done == earlier->given) return;
    auto event = std::make_shared<Event>(Event{earlier->device, false, 1});
    event->stream = earlier;
    Operation record, wait;
    record.name = wait.name = "the order of the default stream";
    record.bookkeeping = true;
    record.run = [event](Lock&) { event->reached = 1; };
    wait.event = event;
    wait.record = 1;
    wait.run = [](Lock&) {};
    append(*earlier, std::move(record));
    append(later, std::move(wait));
}

// The default stream of a device and all blocking streams wait for each other.
static void order_by_default(Stream& stream) {
    for (const auto& each : streams) {
        if (each->device != stream.device || each.get() == &stream) continue;
        bool is_ordered = stream.handle == LEGACY ? each->waits_for_default : each->handle == LEGACY;
        if (is_ordered) order(each, stream);
    }
}

void enqueue(Lock& lock, const std::shared_ptr<Stream>& stream, Operation operation) {
    if (stream->handle == LEGACY || stream->waits_for_default) order_by_default(*stream);
    append(*stream, std::move(operation));
    if (stream->waiting.size() > LONG) reach(lock, stream, stream->given - LONG / 2);
}

int wait_for(Lock& lock, const std::shared_ptr<Stream>& stream) {
    if (!state().config.mutate_wait) reach(lock, stream, stream->given);
    if (!state().lost) settle_pools(stream->device);
    return state().lost;
}

int wait_for_device(Lock& lock, int device) {
    auto all = streams;
    for (const auto& stream : all)
        if (stream->device == device) reach(lock, stream, stream->given);
    if (!state().lost) settle_pools(device);
    return state().lost;
}

int wait_for_event(Lock& lock, const std::shared_ptr<Event>& event) {
    if (state().config.mutate_wait || !event->stream) return state().lost;
    uint64_t wanted = event->recorded;
    while (event->reached < wanted) reach(lock, event->stream, event->stream->done + 1);
    return state().lost;
}

void poll(Lock& lock, const std::shared_ptr<Stream>& stream) {
    if (auto next = leader(stream)) reach(lock, next, next->done + 1);
}

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void forget_stream(const std::shared_ptr<Stream>& stream) {
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == stream) streams.erase(streams.begin() + i--);
}

}  // namespace

}  // namespace standin

using namespace standin;

extern "C" int cuStreamCreate(void** handle, unsigned flags) {
    ENTER("cuStreamCreate", CONTEXT);
    if (!handle || flags > 1) return INVALID_VALUE;
    if (flags == 0) report("cuStreamCreate makes a stream that waits for the default stream");
    auto stream = std::make_shared<Stream>();
    stream->device = current_device();
    stream->waits_for_default = flags == 0;
    stream->handle = *handle = state().streams.add(stream);
    streams.push_back(stream);
    return SUCCESS;
}

extern "C" int cuStreamDestroy_v2(void* handle) {
    ENTER("cuStreamDestroy_v2", CONTEXT);
    auto stream = is_default(handle) ? nullptr : find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    // Its queued operations still run.
    reach(lock, stream, stream->given);
    forget_stream(stream);
    state().streams.remove(handle);
    return SUCCESS;
}

extern "C" int cuStreamSynchronize(void* handle) {
    ENTER("cuStreamSynchronize", CONTEXT);
    auto stream = find_stream(handle);
    return stream ? wait_for(lock, stream) : INVALID_HANDLE;
}

extern "C" int cuStreamQuery(void* handle) {
    ENTER("cuStreamQuery", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream->done == stream->given) return state().lost;
    poll(lock, stream);
    return NOT_READY;
}

extern "C" int cuStreamGetCtx(void* handle, void** context) {
    ENTER("cuStreamGetCtx", INITIALIZED);
    if (is_default(handle) && current_device() < 0) return INVALID_CONTEXT;
    auto stream = is_default(handle) ? default_stream(handle) : state().streams.find(handle);
    if (!stream) return INVALID_HANDLE;
    *context = state().devices[stream->device].context;
    return SUCCESS;
}

extern "C" int cuStreamWaitEvent(void* handle, void* event_handle, unsigned flags) {
    ENTER("cuStreamWaitEvent", CONTEXT);
    auto stream = find_stream(handle);
    auto event = state().events.find(event_handle);
    if (!stream || !event) return INVALID_HANDLE;
    if (flags > 1) return INVALID_VALUE;
    if (event->recorded == 0) return SUCCESS;
    if (event->stream != stream) count("waits_between_streams");
    Operation operation;
    operation.name = "cuStreamWaitEvent";
    operation.event = event;
    operation.record = event->recorded;
    operation.run = [](Lock&) {};
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}

extern "C" int cuEventCreate(void** handle, unsigned flags) {
    ENTER("cuEventCreate", CONTEXT);
    // Flag 1 asks for blocking waits, and 2 disables times. Interprocess events (4) are not supported.
    if (!handle || flags > 3) return INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->device = current_device();
    event->timed = !(flags & 2);
    *handle = state().events.add(event);
    return SUCCESS;
}

extern "C" int cuEventDestroy_v2(void* handle) {
    ENTER("cuEventDestroy_v2", CONTEXT);
    return state().events.remove(handle) ? SUCCESS : INVALID_HANDLE;
}

extern "C" int cuEventRecord(void* handle, void* stream_handle) {
    ENTER("cuEventRecord", CONTEXT);
    auto event = state().events.find(handle);
    auto stream = find_stream(stream_handle);
    if (!stream || !event || event->device != stream->device) return INVALID_HANDLE;
    uint64_t record = ++event->recorded;
    event->stream = stream;
    Operation operation;
    operation.name = "cuEventRecord";
    operation.bookkeeping = true;
    operation.run = [event, record](Lock&) {
        if (record > event->reached) event->reached = record;
        event->seconds = now();
    };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}

extern "C" int cuEventQuery(void* handle) {
    ENTER("cuEventQuery", CONTEXT);
    auto event = state().events.find(handle);
    if (!event) return INVALID_HANDLE;
    if (event->reached == event->recorded) return state().lost;
    poll(lock, event->stream);
    return NOT_READY;
}

extern "C" int cuEventSynchronize(void* handle) {
    ENTER("cuEventSynchronize", CONTEXT);
    auto event = state().events.find(handle);
    return event ? wait_for_event(lock, event) : INVALID_HANDLE;
}

static int elapsed(float* milliseconds, void* start, void* end) {
    auto first = state().events.find(start), last = state().events.find(end);
    if (!first || !last || !first->timed || !last->timed || !first->recorded || !last->recorded) return INVALID_HANDLE;
    if (first->reached < first->recorded || last->reached < last->recorded) return NOT_READY;
    *milliseconds = float(1000 * (last->seconds - first->seconds));
    return SUCCESS;
}

extern "C" int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
    ENTER("cuEventElapsedTime", CONTEXT);
    return elapsed(milliseconds, start, end);
}

extern "C" int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
    ENTER("cuEventElapsedTime_v2", CONTEXT);
    return elapsed(milliseconds, start, end);
}
