// The driver, its devices, and their primary contexts.
#include <cstdio>
#include <cstring>

#include "queue.h"

namespace standin {

namespace {

thread_local void* current = nullptr;

// The attributes of an H100. The configuration sets the capability and the support of pools.
const std::map<unsigned, int> ATTRIBUTES = {
    {1, 1024},        // threads of a block
    {2, 1024},        // along x
    {3, 1024},        // along y
    {4, 64},          // along z
    {5, 2147483647},  // blocks along x
    {6, 65535},       // along y
    {7, 65535},       // along z
    {8, 49152},       // bytes of shared memory of a block
    {9, 65536},       // bytes of constant memory
    {10, 32},         // threads of a warp
    {12, 65536},      // registers of a block
    {13, 1980000},    // kilohertz
    {16, 132},        // multiprocessors
    {17, 0},          // time limit of kernels
    {18, 0},          // integrated
    {19, 1},          // maps the host's memory
    {31, 1},          // kernels at once
    {36, 2619000},    // kilohertz of the memory
    {37, 5120},       // bits of the bus
    {38, 52428800},   // bytes of the second cache
    {39, 2048},       // threads of a multiprocessor
    {40, 3},          // copy engines
    {41, 1},          // one space of addresses
    {81, 233472},     // bytes of shared memory of a multiprocessor
    {82, 65536},      // registers of a multiprocessor
    {83, 1},          // managed memory
    {88, 0},          // reads pageable memory
    {97, 232448},     // bytes of shared memory of a block that asks for them
    {100, 0},         // uses the host's page tables
};

Device* device_of(int number) {
    return number >= 0 && size_t(number) < state().devices.size() ? &state().devices[number] : nullptr;
}

template <class T> void release_each(Handles<T>& handles, int device, const char* what) {
    size_t count = 0;
    std::vector<uint64_t> all;
    for (const auto& [handle, each] : handles.each())
        if (each->device == device) all.push_back(handle);
    for (uint64_t handle : all) {
        handles.remove(reinterpret_cast<void*>(handle));
        count++;
    }
    // On a lost device nothing can be freed.
    if (count > 0 && !state().lost) report("the context is released while there are %zu %s", count, what);
}

}  // namespace

int current_device() {
    auto context = state().contexts.find(current);
    return context ? context->device : -1;
}

void release_context(Lock& lock, int device) {
    wait_for_device(lock, device);
    std::string examples;
    size_t blocks = release_blocks(device, examples);
    if (blocks > 0 && !state().lost)
        report("the context is released while %zu blocks are allocated: %s", blocks, examples.c_str());
    release_each(state().libraries, device, "handles of cuBLAS or cuRAND");
    release_each(state().modules, device, "modules");
    release_each(state().events, device, "events");
    release_each(state().streams, device, "streams");
    size_t pinned = release_pinned(device);
    if (pinned > 0 && !state().lost) report("the context is released while %zu pieces of memory are pinned", pinned);
    state().devices[device].outside = 0;
    Pool& pool = *state().devices[device].pool;
    pool.used = pool.leaving = pool.reserved = 0;
    forget_destroyed_pools(device);
}

}  // namespace standin

using namespace standin;

extern "C" int cuInit(unsigned flags) {
    ENTER_ALWAYS("cuInit", NOTHING);
    if (flags != 0) return INVALID_VALUE;
    if (state().config.devices == 0) return NO_DEVICE;
    while (state().devices.size() < size_t(state().config.devices)) {
        Device device;
        device.pool = std::make_shared<Pool>();
        device.pool->device = int(state().devices.size());
        device.pool->is_default = true;
        device.pool_handle = state().pools.add(device.pool);
        state().devices.push_back(device);
    }
    state().initialized = true;
    return SUCCESS;
}

extern "C" int cuDriverGetVersion(int* version) {
    ENTER_ALWAYS("cuDriverGetVersion", NOTHING);
    *version = state().config.driver;
    return SUCCESS;
}

extern "C" int cuDeviceGetCount(int* count) {
    ENTER_ALWAYS("cuDeviceGetCount", INITIALIZED);
    *count = state().config.devices;
    return SUCCESS;
}

extern "C" int cuDeviceGet(int* device, int ordinal) {
    ENTER_ALWAYS("cuDeviceGet", INITIALIZED);
    if (ordinal < 0 || ordinal >= state().config.devices) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

extern "C" int cuDeviceGetName(char* name, int length, int device) {
    ENTER_ALWAYS("cuDeviceGetName", INITIALIZED);
    if (!device_of(device) || length < 1) return INVALID_VALUE;
    snprintf(name, size_t(length), "%s", state().config.name.c_str());
    return SUCCESS;
}

extern "C" int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    ENTER_ALWAYS("cuDeviceGetUuid_v2", INITIALIZED);
    if (!device_of(device)) return INVALID_DEVICE;
    memset(uuid, 0x5d, 16);
    uuid[15] = (unsigned char)device;
    return SUCCESS;
}

extern "C" int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    ENTER_ALWAYS("cuDeviceTotalMem_v2", INITIALIZED);
    if (!device_of(device)) return INVALID_DEVICE;
    *bytes = state().config.memory;
    return SUCCESS;
}

extern "C" int cuDeviceGetAttribute(int* value, unsigned attribute, int device) {
    ENTER_ALWAYS("cuDeviceGetAttribute", INITIALIZED);
    if (!device_of(device)) return INVALID_DEVICE;
    auto found = ATTRIBUTES.find(attribute);
    if (attribute == 75) *value = state().config.major;
    else if (attribute == 76) *value = state().config.minor;
    else if (attribute == 115) *value = state().config.pools;
    else if (found != ATTRIBUTES.end()) *value = found->second;
    else {
        report("cuDeviceGetAttribute asks for attribute %u, which the stand-in does not know", attribute);
        return INVALID_VALUE;
    }
    return SUCCESS;
}

extern "C" int cuDeviceGetDefaultMemPool(void** pool, int device) {
    ENTER("cuDeviceGetDefaultMemPool", INITIALIZED);
    if (!device_of(device)) return INVALID_DEVICE;
    *pool = device_of(device)->pool_handle;
    return SUCCESS;
}

extern "C" int cuDevicePrimaryCtxRetain(void** handle, int number) {
    ENTER("cuDevicePrimaryCtxRetain", INITIALIZED);
    Device* device = device_of(number);
    if (!device) return INVALID_DEVICE;
    if (!device->context) {
        auto context = std::make_shared<Context>();
        context->device = number;
        device->context = state().contexts.add(context);
    }
    state().contexts.find(device->context)->references++;
    *handle = device->context;
    return SUCCESS;
}

extern "C" int cuDevicePrimaryCtxRelease_v2(int number) {
    ENTER_ALWAYS("cuDevicePrimaryCtxRelease_v2", INITIALIZED);
    Device* device = device_of(number);
    if (!device || !device->context) return INVALID_CONTEXT;
    auto context = state().contexts.find(device->context);
    if (--context->references > 0) return SUCCESS;
    release_context(lock, number);
    state().contexts.remove(device->context);
    device->context = nullptr;
    return SUCCESS;
}

extern "C" int cuCtxGetCurrent(void** handle) {
    ENTER_ALWAYS("cuCtxGetCurrent", INITIALIZED);
    *handle = state().contexts.find(current) ? current : nullptr;
    return SUCCESS;
}

extern "C" int cuCtxSetCurrent(void* handle) {
    ENTER_ALWAYS("cuCtxSetCurrent", INITIALIZED);
    if (handle && !state().contexts.find(handle)) return INVALID_CONTEXT;
    current = handle;
    return SUCCESS;
}

extern "C" int cuCtxGetDevice(int* device) {
    ENTER("cuCtxGetDevice", CONTEXT);
    *device = current_device();
    return SUCCESS;
}

extern "C" int cuCtxSynchronize() {
    ENTER("cuCtxSynchronize", CONTEXT);
    return state().config.mutate_wait ? int(SUCCESS) : wait_for_device(lock, current_device());
}

// The name and the text of each status.
static const std::map<unsigned, std::pair<const char*, const char*>> STATUSES = {
    {0, {"CUDA_SUCCESS", "no error"}},
    {1, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {2, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {3, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
    {100, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {101, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
    {201, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {209, {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
    {218, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
    {222, {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."}},
    {223, {"CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"}},
    {400, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {500, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {600, {"CUDA_ERROR_NOT_READY", "device not ready"}},
    {700, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
    {701, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
    {712, {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"}},
    {713, {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"}},
    {719, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
    {801, {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}},
    {999, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

extern "C" int cuGetErrorString(unsigned code, const char** text) {
    auto found = STATUSES.find(code);
    *text = found == STATUSES.end() ? nullptr : found->second.second;
    return *text ? SUCCESS : INVALID_VALUE;
}

extern "C" int cuGetErrorName(unsigned code, const char** name) {
    auto found = STATUSES.find(code);
    *name = found == STATUSES.end() ? nullptr : found->second.first;
    return *name ? SUCCESS : INVALID_VALUE;
}

// ── What is known of an address ──

static int attribute_of(void* value, int attribute, Address address, bool& is_known) {
    Block* block = block_at(address);
    Pinned* pinned = pinned_of(reinterpret_cast<void*>(address), 1);
    if (block && block->freed_at_call) block = nullptr;
    is_known = block || pinned;
    int device = block ? block->device : current_device();
    Address start = block ? block->start : pinned ? pinned->start : 0;
    size_t size = block ? block->size : pinned ? pinned->size : 0;
    switch (attribute) {
        case 1: memcpy(value, &state().devices[device].context, sizeof(void*)); break;
        case 2: *static_cast<unsigned*>(value) = block ? 2 : pinned ? 1 : 0; break;
        case 3:
        case 4: *static_cast<Address*>(value) = attribute == 3 || !block ? address : 0; break;
        case 9: *static_cast<int*>(value) = device; break;
        case 11: *static_cast<Address*>(value) = start; break;
        case 12: *static_cast<size_t*>(value) = size; break;
        default: report("cuPointerGetAttribute asks for attribute %d, which the stand-in does not know", attribute);
            return INVALID_VALUE;
    }
    return SUCCESS;
}

extern "C" int cuPointerGetAttribute(void* value, int attribute, Address address) {
    ENTER("cuPointerGetAttribute", CONTEXT);
    bool is_known = false;
    int code = attribute_of(value, attribute, address, is_known);
    return code ? code : is_known ? SUCCESS : INVALID_VALUE;
}

extern "C" int cuPointerGetAttributes(unsigned count, int* attributes, void** values, Address address) {
    ENTER("cuPointerGetAttributes", CONTEXT);
    for (unsigned i = 0; i < count; i++) {
        bool is_known = false;
        if (int code = attribute_of(values[i], attributes[i], address, is_known)) return code;
    }
    return SUCCESS;
}
