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
    // Whether a pool may be destroyed while other code still has memory of it.
    bool given = false;
    // Whether the driver compiles PTX; CUDA_DISABLE_PTX_JIT switches that off.
    bool jit = true;
    bool mutate_wait = false, mutate_arguments = false, mutate_source = false, mutate_past = false;
};

// The requirements of a function.
enum Needs { NOTHING, INITIALIZED, CONTEXT };

// A library's codes for: not initialized (also in a forked process), no context, and a lost device.
struct Codes {
    int not_initialized, no_context;
    int lost;  // 0: the driver's own code
};
const Codes DRIVER_CODES = {NOT_INITIALIZED, INVALID_CONTEXT, 0};

// Locks the state and counts a call. Returns the code with which the call fails at once, or 0.
int enter(Lock& lock, const char* symbol, Needs needs, const Codes& codes = DRIVER_CODES, bool survives_loss = false);
// The names of the functions that call `enter`, then null. `build.py` lists them.
extern const char* const FUNCTIONS[];
// Counts, among the calls, what is no call of a function.
void count(const char* what);
// Whether this process is a fork of the one that loaded the library.
bool forked();

// Records a misuse that a driver would not report.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Formats a text like printf.
std::string formatted(const char* format, ...) __attribute__((format(printf, 1, 2)));

#define ENTER_AS(symbol, needs, codes, survives)                                \
    Lock lock;                                                                  \
    if (int code = standin::enter(lock, symbol, needs, codes, survives)) return code
#define ENTER(symbol, needs) ENTER_AS(symbol, needs, standin::DRIVER_CODES, false)
// For functions that work also on a lost device.
#define ENTER_ALWAYS(symbol, needs) ENTER_AS(symbol, needs, standin::DRIVER_CODES, true)

// ── Handles ──

// Objects by handle. No handle is used twice.
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
    // The number of records, and the number of the last record that has run.
    uint64_t recorded = 0, reached = 0;
    std::shared_ptr<Stream> stream;  // of the last record
    double seconds = 0;
};

struct Operation {
    std::string name;
    // Runs on the executor's thread; may unlock the state for work that takes long.
    std::function<void(Lock&)> run;
    // If set, the operation waits until the event has reached this record.
    std::shared_ptr<Event> event;
    uint64_t record = 0;
    // Whether the operation runs on a lost device too, for example to count memory.
    bool bookkeeping = false;
};

// ── Memory (memory.cpp, pools.cpp) ──

struct Pool {
    int device;
    bool is_default = false;
    uint64_t threshold = 0, reserved = 0, most_reserved = 0, used = 0, most_used = 0;
    // Bytes that a call has freed, but the stream has not yet.
    uint64_t leaving = 0;
    int reuse[3] = {1, 1, 1};
};

enum Life { PLANNED, LIVE, FREED };

struct Block {
    Address start;
    size_t size;
    // The bytes before the guard: `size`, or fewer by a mutation.
    size_t usable;
    int device;
    std::shared_ptr<Pool> pool;  // null: of cuMemAlloc
    Life life = PLANNED;
    bool freed_at_call = false;
};

struct Pinned {
    uint64_t start;
    size_t size;
    bool owned;
    // The device of the context that pinned the memory.
    int device;
    int pending = 0;
};

// ── Devices (device.cpp) ──

struct Context {
    int device;
    int references = 0;
};

struct Device {
    // The handle of the primary context; null if it is not retained.
    void* context = nullptr;
    std::shared_ptr<Pool> pool;
    void* pool_handle = nullptr;
    // The bytes of modules, of handles of libraries, and of cuMemAlloc.
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
// Frees the resources of a context, and reports them.
void release_context(Lock& lock, int device);

// The stream of a handle in the current context; null if there is none.
std::shared_ptr<Stream> find_stream(const void* handle);
// Adds an operation to the stream. Waits if the stream has too many.
void enqueue(Lock& lock, const std::shared_ptr<Stream>& stream, Operation operation);
// Waits until all operations of the stream have run. Returns an error if the device is lost.
int wait_for(Lock& lock, const std::shared_ptr<Stream>& stream);
// Waits for all streams of a device.
int wait_for_device(Lock& lock, int device);
// The numbers of operations that were added to the stream, and that have run.
uint64_t given(const std::shared_ptr<Stream>& stream);
uint64_t done(const std::shared_ptr<Stream>& stream);
// The next random number of the seed.
uint64_t draw();

// Takes memory outside of the pools. Returns false if there is too little.
bool take_outside(int device, uint64_t bytes);
void give_outside(int device, uint64_t bytes);
uint64_t free_bytes(int device);
// Releases the unused memory of pools above their thresholds.
void settle_pools(int device);
void trim(Pool& pool, uint64_t keep);
void forget_destroyed_pools(int device);

// The live block of the device that contains all `size` bytes at the address. If there is none, returns null and writes a
// sentence to `why`.
Block* live_block(Address start, size_t size, int device, std::string& why);
// The live or freed block whose memory or guards contain an address; null if there is none.
Block* block_at(Address address);
// Whether an address is in the range of the device's memory.
bool is_device_address(Address address);
// Where the stand-in reads and writes a byte of the device.
char* host_of(Address address);
// Checks the guards of a block. Reports a changed guard as a write by `who`.
void check_guards(Block& block, const char* who);
// The pinned memory that contains all of the bytes; null if there is none.
Pinned* pinned_of(const void* start, size_t size);
// Releases all blocks of a device. Returns the number of blocks that were not freed.
size_t release_blocks(int device, std::string& examples);
// Forgets the pinned memory of a device. Returns the number of pieces.
size_t release_pinned(int device);

// Reads or writes memory of the host. Returns false if the address is invalid.
bool read_host(void* to, uint64_t from, size_t size);
bool write_host(uint64_t to, const void* from, size_t size);

}  // namespace standin
