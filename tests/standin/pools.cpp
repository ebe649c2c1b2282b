// Allocation: pools with their accounts, memory outside of pools, and pinned memory of the host.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "queue.h"

namespace standin {

namespace {

// The unit in which a pool takes memory from the device.
const uint64_t CHUNK = 2 << 20;
// The unit of a block's memory in a pool.
const uint64_t UNIT = 512;

std::map<uint64_t, std::shared_ptr<Pinned>>& pinned = *new std::map<uint64_t, std::shared_ptr<Pinned>>;

uint64_t up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Destroyed pools. Those of whose memory a part is still in use keep it.
std::vector<std::shared_ptr<Pool>>& destroyed = *new std::vector<std::shared_ptr<Pool>>;

uint64_t reserved(int device) {
    uint64_t sum = 0;
    for (const auto& pool : destroyed)
        if (pool->device == device) sum += up(pool->used + pool->leaving, CHUNK);
    for (const auto& [handle, pool] : state().pools.each())
        if (pool->device == device) sum += pool->reserved;
    return sum;
}

bool charge(Pool& pool, uint64_t bytes) {
    // Memory that a stream has freed by a call is used again by those that follow.
    if (pool.used + bytes > pool.reserved) {
        uint64_t more = up(pool.used + bytes - pool.reserved, CHUNK);
        if (more > free_bytes(pool.device)) return false;
        pool.reserved += more;
    }
    pool.used += bytes;
    pool.most_used = std::max(pool.most_used, pool.used);
    pool.most_reserved = std::max(pool.most_reserved, pool.reserved);
    return true;
}

int allocate(Lock& lock, Address* address, size_t size, const std::shared_ptr<Pool>& pool, void* handle) {
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    if (!address || size == 0 || pool->device != stream->device) return INVALID_VALUE;
    if (size > state().config.memory || !charge(*pool, up(size, UNIT))) return OUT_OF_MEMORY;
    Block& block = new_block(size, stream->device);
    block.pool = pool;
    *address = block.start;
    Operation operation;
    operation.name = "cuMemAllocAsync";
    operation.bookkeeping = true;
    operation.run = [&block](Lock&) { block.life = LIVE; };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}

std::shared_ptr<Pinned> holder(const void* start, size_t size) {
    auto behind = pinned.upper_bound(uint64_t(start));
    if (behind == pinned.begin()) return nullptr;
    auto each = std::prev(behind)->second;
    return uint64_t(start) - each->start <= each->size && size <= each->size - (uint64_t(start) - each->start) ? each : nullptr;
}

// Returns the pages to the system and keeps the addresses, so that a later read ends the process.
void give_back(const Pinned& memory) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (memory.owned) mmap(reinterpret_cast<void*>(memory.start), up(memory.size, 4096), PROT_NONE, flags, -1, 0);
}

int release(void* start, bool owned) {
    auto found = pinned.find(uint64_t(start));
    if (found == pinned.end() || found->second->owned != owned) return INVALID_VALUE;
    if (found->second->pending > 0)
        report("%zu bytes of pinned memory are freed while %d copies of them wait", found->second->size, found->second->pending);
    give_back(*found->second);
    pinned.erase(found);
    return SUCCESS;
}

int pin(void** start, size_t size) {
    if (!start || size == 0) return INVALID_VALUE;
    void* memory = mmap(nullptr, up(size, 4096), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return OUT_OF_MEMORY;
    memset(memory, 0xa5, size);
    pinned[uint64_t(memory)] = std::make_shared<Pinned>(Pinned{uint64_t(memory), size, true, current_device()});
    *start = memory;
    return SUCCESS;
}

}  // namespace

bool take_outside(int device, uint64_t bytes) {
    if (bytes > free_bytes(device)) return false;
    state().devices[device].outside += bytes;
    return true;
}

void give_outside(int device, uint64_t bytes) { state().devices[device].outside -= bytes; }

uint64_t free_bytes(int device) {
    uint64_t taken = reserved(device) + state().devices[device].outside;
    return taken < state().config.memory ? state().config.memory - taken : 0;
}

void trim(Pool& pool, uint64_t keep) {
    uint64_t least = up(std::max(pool.used + pool.leaving, keep), CHUNK);
    pool.reserved = std::min(pool.reserved, least);
}

void settle_pools(int device) {
    for (const auto& [handle, pool] : state().pools.each())
        if (pool->device == device && pool->threshold < pool->reserved) trim(*pool, pool->threshold);
}

void forget_destroyed_pools(int device) {
    for (size_t i = 0; i < destroyed.size(); i++)
        if (destroyed[i]->device == device) destroyed.erase(destroyed.begin() + i--);
}

Pinned* pinned_of(const void* start, size_t size) { return holder(start, size).get(); }

size_t release_pinned(int device) {
    size_t before = pinned.size();
    for (auto each = pinned.begin(); each != pinned.end();) {
        bool is_of_device = each->second->device == device;
        if (is_of_device) give_back(*each->second);
        each = is_of_device ? pinned.erase(each) : std::next(each);
    }
    return before - pinned.size();
}

}  // namespace standin

using namespace standin;

extern "C" int cuMemAllocAsync(Address* address, size_t size, void* stream) {
    ENTER("cuMemAllocAsync", CONTEXT);
    return allocate(lock, address, size, state().devices[current_device()].pool, stream);
}

extern "C" int cuMemAllocFromPoolAsync(Address* address, size_t size, void* pool, void* stream) {
    ENTER("cuMemAllocFromPoolAsync", CONTEXT);
    auto found = state().pools.find(pool);
    return found ? allocate(lock, address, size, found, stream) : INVALID_VALUE;
}

extern "C" int cuMemFreeAsync(Address address, void* handle) {
    ENTER("cuMemFreeAsync", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    Block* block = block_at(address);
    if (!block || block->start != address || block->freed_at_call) {
        report("cuMemFreeAsync has %#llx, which is %s", address, block ? "freed or inside of a block" : "no block");
        return INVALID_VALUE;
    }
    block->freed_at_call = true;
    uint64_t bytes = up(block->size, UNIT);
    auto pool = block->pool;
    if (pool) pool->used -= bytes, pool->leaving += bytes;
    Operation operation;
    operation.name = "cuMemFreeAsync";
    operation.bookkeeping = true;
    operation.run = [block, pool, bytes, device = stream->device](Lock&) {
        if (block->life == PLANNED) report("a block of %zu bytes is freed before its stream has allocated it", block->size);
        if (pool) pool->leaving -= bytes;
        else give_outside(device, bytes);
        free_block(*block);
    };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}

extern "C" int cuMemAlloc_v2(Address* address, size_t size) {
    ENTER("cuMemAlloc_v2", CONTEXT);
    if (!address || size == 0) return INVALID_VALUE;
    if (size > state().config.memory || !take_outside(current_device(), up(size, UNIT))) return OUT_OF_MEMORY;
    Block& block = new_block(size, current_device());
    block.life = LIVE;
    *address = block.start;
    return SUCCESS;
}

extern "C" int cuMemFree_v2(Address address) {
    ENTER("cuMemFree_v2", CONTEXT);
    wait_for_device(lock, current_device());
    Block* block = block_at(address);
    if (!block || block->start != address || block->freed_at_call) return INVALID_VALUE;
    block->freed_at_call = true;
    if (block->pool) block->pool->used -= up(block->size, UNIT);
    else give_outside(block->device, up(block->size, UNIT));
    free_block(*block);
    return SUCCESS;
}

extern "C" int cuMemGetInfo_v2(size_t* available, size_t* total) {
    ENTER("cuMemGetInfo_v2", CONTEXT);
    *available = free_bytes(current_device());
    *total = state().config.memory;
    return SUCCESS;
}

// ── Pools ──

struct PoolProperties {
    int allocation, handles, location, id;
    void* security;
    size_t most;
    unsigned short usage;
};

extern "C" int cuMemPoolCreate(void** handle, const PoolProperties* properties) {
    ENTER("cuMemPoolCreate", INITIALIZED);
    const int PINNED = 1, DEVICE = 1;
    if (!handle || properties->allocation != PINNED || properties->location != DEVICE) return INVALID_VALUE;
    if (properties->id < 0 || size_t(properties->id) >= state().devices.size()) return INVALID_VALUE;
    auto pool = std::make_shared<Pool>();
    pool->device = properties->id;
    *handle = state().pools.add(pool);
    return SUCCESS;
}

extern "C" int cuMemPoolDestroy(void* handle) {
    ENTER("cuMemPoolDestroy", INITIALIZED);
    auto pool = state().pools.find(handle);
    if (!pool || pool->is_default) return INVALID_VALUE;
    if (pool->used > 0 && !state().config.given)
        report("a pool is destroyed while %llu bytes of it are allocated", (unsigned long long)pool->used);
    destroyed.push_back(pool);
    state().pools.remove(handle);
    return SUCCESS;
}

// The place of an attribute; null if it does not exist. `is_short` tells whether it has 32 bits or 64.
static void* attribute_of(Pool& pool, unsigned attribute, bool& is_short) {
    is_short = attribute <= 3;
    switch (attribute) {
        case 1:
        case 2:
        case 3: return &pool.reuse[attribute - 1];
        case 4: return &pool.threshold;
        case 5: return &pool.reserved;
        case 6: return &pool.most_reserved;
        case 7: return &pool.used;
        case 8: return &pool.most_used;
        default: return nullptr;
    }
}

extern "C" int cuMemPoolSetAttribute(void* handle, unsigned attribute, void* value) {
    ENTER("cuMemPoolSetAttribute", INITIALIZED);
    auto pool = state().pools.find(handle);
    bool is_short = false;
    void* place = pool ? attribute_of(*pool, attribute, is_short) : nullptr;
    // The present amounts are read-only.
    if (!place || attribute == 5 || attribute == 7) return INVALID_VALUE;
    if (attribute == 6) pool->most_reserved = pool->reserved;
    else if (attribute == 8) pool->most_used = pool->used;
    else memcpy(place, value, is_short ? 4 : 8);
    return SUCCESS;
}

extern "C" int cuMemPoolGetAttribute(void* handle, unsigned attribute, void* value) {
    ENTER("cuMemPoolGetAttribute", INITIALIZED);
    auto pool = state().pools.find(handle);
    bool is_short = false;
    void* place = pool ? attribute_of(*pool, attribute, is_short) : nullptr;
    if (!place) return INVALID_VALUE;
    memcpy(value, place, is_short ? 4 : 8);
    return SUCCESS;
}

extern "C" int cuMemPoolTrimTo(void* handle, size_t keep) {
    ENTER("cuMemPoolTrimTo", INITIALIZED);
    auto pool = state().pools.find(handle);
    if (!pool) return INVALID_VALUE;
    trim(*pool, keep);
    return SUCCESS;
}

struct Access {
    int location, id, flags;
};

extern "C" int cuMemPoolSetAccess(void* handle, const Access* access, size_t count) {
    ENTER("cuMemPoolSetAccess", INITIALIZED);
    if (!state().pools.find(handle)) return INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (access[i].location != 1 || size_t(access[i].id) >= state().devices.size()) return INVALID_VALUE;
    return SUCCESS;
}

// ── Pinned memory ──

extern "C" int cuMemHostAlloc(void** start, size_t size, unsigned flags) {
    ENTER("cuMemHostAlloc", CONTEXT);
    return flags > 7 ? int(INVALID_VALUE) : pin(start, size);
}

extern "C" int cuMemAllocHost_v2(void** start, size_t size) {
    ENTER("cuMemAllocHost_v2", CONTEXT);
    return pin(start, size);
}

extern "C" int cuMemFreeHost(void* start) {
    ENTER("cuMemFreeHost", CONTEXT);
    return release(start, true);
}

extern "C" int cuMemHostRegister_v2(void* start, size_t size, unsigned flags) {
    ENTER("cuMemHostRegister_v2", CONTEXT);
    if (!start || size == 0 || flags > 15) return INVALID_VALUE;
    if (holder(start, 1)) return 712;  // it is registered already
    pinned[uint64_t(start)] = std::make_shared<Pinned>(Pinned{uint64_t(start), size, false, current_device()});
    return SUCCESS;
}

extern "C" int cuMemHostUnregister(void* start) {
    ENTER("cuMemHostUnregister", CONTEXT);
    int code = release(start, false);
    return code ? 713 : code;  // it is not registered
}
