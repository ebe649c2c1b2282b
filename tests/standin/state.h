// The state of the stand-in for NVIDIA's driver. One mutex guards all of it; functions that take a `Lock` expect it held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace standin {

typedef std::unique_lock<std::mutex> Lock;
// An address of the device, as kernels and copies take it.
typedef unsigned long long Address;

// The codes of `CUresult` that the stand-in returns by itself.
enum Code : int {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    JIT_COMPILATION_DISABLED = 223,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
};

// ── Configuration (config.cpp) ──

struct Failure {
    std::string symbol;
    long call;
    int code;
    // Whether later calls fail too.
    bool and_later = false;
};

struct Configuration {
    int driver = 13000, devices = 1, major = 9, minor = 0;
    std::string name = "NVIDIA H100 80GB HBM3";
    size_t memory = size_t(8) << 30;
    uint64_t seed = 0;
    // Calls that fail, and calls at which the device is lost.
    std::vector<Failure> failures, losses;
    // The number of the launch that crashes when it runs; 0 for none.
    long crash = 0;
    // Copies between the device and pageable memory: an upload reads its source at the call (staged) or when it runs; a
    // download returns after the copy, or at once.
    bool staged_uploads = false, late_downloads = false;
    // An upload of more than 64 KiB from pageable memory must be waited for before the next call.
    bool strict = false;
    // Whether the devices have memory pools.
    bool pools = true;
    // Whether the driver compiles PTX; CUDA_DISABLE_PTX_JIT switches that off.
    bool jit = true;
    bool mutate_wait = false, mutate_arguments = false, mutate_source = false, mutate_past = false;
};

// What a function needs before it works.
enum Needs { NOTHING, INITIALIZED, CONTEXT };

// The codes with which a library says that it cannot work: not initialized (also in a forked process), no context, a lost
// device.
struct Codes {
    int not_initialized, no_context;
    int lost;  // 0: the driver's own code
};
const Codes DRIVER_CODES = {NOT_INITIALIZED, INVALID_CONTEXT, 0};

// Counts a call, and gives the code that it ends with at once; 0 where it goes on. Locks the state.
int enter(Lock& lock, const char* symbol, Needs needs, const Codes& codes = DRIVER_CODES, bool survives_loss = false);
// The functions that do so, by name, and null behind them. `build.py` lists them.
extern const char* const FUNCTIONS[];
// Whether this process is a fork of the one that loaded the library.
bool forked();

// Records a misuse that a driver would not report.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Text as printf makes it.
std::string formatted(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define ENTER_AS(symbol, needs, codes, survives)                                \
    Lock lock;                                                                  \
    if (int code = standin::enter(lock, symbol, needs, codes, survives)) return code
#define ENTER(symbol, needs) ENTER_AS(symbol, needs, standin::DRIVER_CODES, false)
// Of a function that works also on a lost device.
#define ENTER_ALWAYS(symbol, needs) ENTER_AS(symbol, needs, standin::DRIVER_CODES, true)

// ── Handles ──

// Objects by handles, none of which is used twice.
template <class T> class Handles {
    std::map<uint64_t, std::shared_ptr<T>> all;
    uint64_t next;

  public:
    explicit Handles(uint64_t first) : next(first) {}
    void* add(std::shared_ptr<T> value) {
        uint64_t handle = next;
        next += 16;
        all[handle] = std::move(value);
        return reinterpret_cast<void*>(handle);
    }
    std::shared_ptr<T> find(const void* handle) const {
        auto found = all.find(reinterpret_cast<uint64_t>(handle));
        return found == all.end() ? nullptr : found->second;
    }
    bool remove(const void* handle) { return all.erase(reinterpret_cast<uint64_t>(handle)) == 1; }
    const std::map<uint64_t, std::shared_ptr<T>>& each() const { return all; }
    void clear() { all.clear(); }
};

// ── Streams and events (queue.cpp) ──

struct Stream;

struct Event {
    int device;
    bool timed;
    // How often it was recorded, and the number of the record that the queues have come to.
    uint64_t recorded = 0, reached = 0;
    std::shared_ptr<Stream> stream;  // of the last record
    double seconds = 0;
};

struct Operation {
    std::string name;
    // Runs on the executor's thread; may unlock the state for work that takes long.
    std::function<void(Lock&)> run;
    // Where set, the operation is not run before the event has reached this record.
    std::shared_ptr<Event> event;
    uint64_t record = 0;
    // Runs on a lost device too: accounts of memory.
    bool bookkeeping = false;
};

// ── Memory (memory.cpp, pools.cpp) ──

struct Pool {
    int device;
    bool is_default = false, destroyed = false;
    uint64_t threshold = 0, reserved = 0, most_reserved = 0, used = 0, most_used = 0;
    // Freed at a call, and not yet in the order of the stream.
    uint64_t leaving = 0;
    int reuse[3] = {1, 1, 1};
};

enum Life { PLANNED, LIVE, FREED };

struct Block {
    Address start;
    size_t size;
    // The bytes before the guard; fewer than `size` where a mutation says so.
    size_t room;
    int device;
    std::shared_ptr<Pool> pool;  // null: of cuMemAlloc
    Life life = PLANNED;
    bool freed_at_call = false;
};

struct Pinned {
    uint64_t start;
    size_t size;
    bool owned;
    // That of the context in which it was pinned.
    int device;
    int pending = 0;
};

// ── Devices (device.cpp) ──

struct Context {
    int device;
    int references = 0;
};

struct Device {
    // The handle of the primary context; null where nobody holds it.
    void* context = nullptr;
    std::shared_ptr<Pool> pool;
    void* pool_handle = nullptr;
    // Bytes that modules and handles of libraries hold, and cuMemAlloc.
    uint64_t outside = 0;
};

// ── Modules (modules.cpp) ──

struct Kernel {
    std::string name;
    const void* entry;
    size_t parameters;
};

struct Module {
    int device;
    std::map<std::string, Kernel> kernels;
};

struct Function {
    Kernel kernel;
    void* module;
    int device;
};

// A handle of cuBLAS or cuRAND.
struct Library {
    const char* name;
    int device;
    void* stream = nullptr;
    uint64_t bytes;
    bool busy = false;
};

struct State {
    std::mutex mutex;
    Configuration config;
    bool initialized = false;
    int lost = 0;  // the code of every later call
    long launches = 0;  // that have run since the last configuration
    std::vector<Device> devices;
    Handles<Context> contexts{0x51000010};
    Handles<Stream> streams{0x52000010};
    Handles<Event> events{0x53000010};
    Handles<Pool> pools{0x54000010};
    Handles<Module> modules{0x55000010};
    Handles<Function> functions{0x56000010};
    Handles<Library> libraries{0x57000010};
};
State& state();

// The device of the calling thread's current context. `enter` has made sure that there is one.
int current_device();
// Frees what a context held, and reports it.
void release_context(Lock& lock, int device);

// The stream of a handle in the current context; null where there is none.
std::shared_ptr<Stream> find_stream(const void* handle);
// Puts an operation behind those of the stream. Waits where the stream has too many.
void enqueue(Lock& lock, const std::shared_ptr<Stream>& stream, Operation operation);
// Waits until the stream has done all that it was given. The code of the device's loss, where it is lost.
int wait_for(Lock& lock, const std::shared_ptr<Stream>& stream);
// Waits for all streams of a device.
int wait_for_device(Lock& lock, int device);
// The number of operations that the stream was given, and that it has done.
uint64_t given(const std::shared_ptr<Stream>& stream);
uint64_t done(const std::shared_ptr<Stream>& stream);
// A number that depends on the seed and on how many were drawn before.
uint64_t draw();

// Takes memory outside of the pools; false where there is none.
bool take_outside(int device, uint64_t bytes);
void give_outside(int device, uint64_t bytes);
uint64_t free_bytes(int device);
// Gives back what pools keep above their thresholds.
void settle_pools(int device);
void trim(Pool& pool, uint64_t keep);

// Memory of the device that `size` bytes at the address lie in; null and a sentence in `why` where they do not lie in one
// live block of the device.
Block* live_block(Address start, size_t size, int device, std::string& why);
// The block that an address lies in or behind, live or freed, its guards included; null where none is known.
Block* block_at(Address address);
// Whether the address is one that the device may have given out.
bool is_device_address(Address address);
// Where the stand-in reads and writes a byte of the device.
char* host_of(Address address);
// Checks the guards of a block; reports what was written over them, as done by `who`.
void check_guards(Block& block, const char* who);
// The pinned memory that holds all of the bytes; null where there is none.
Pinned* pinned_of(const void* start, size_t size);
// Releases all blocks of a device; the number of those that were not freed.
size_t release_blocks(int device, std::string& examples);
// Forgets the pinned memory of a device; how many pieces there were.
size_t release_pinned(int device);

// Reads or writes memory of the host, which may not be there.
bool read_host(void* to, uint64_t from, size_t size);
bool write_host(uint64_t to, const void* from, size_t size);

}  // namespace standin
