// Memory of the device. The host cannot read an address of the device. Its contents are at the address plus DISTANCE, where
// only the stand-in reads them. Blocks have guards on both sides, and no two blocks have the same address.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "queue.h"

namespace standin {

namespace {

const uint64_t BASE = 0x6b5a00000000, CAPACITY = uint64_t(2) << 40, DISTANCE = CAPACITY;
const size_t GUARD = 256, ALIGNMENT = 256;
const unsigned char UNWRITTEN = 0xa5;
// The bytes of freed blocks that the stand-in checks for late writes.
const size_t QUARANTINE = 64 << 20;
const size_t PAGE = 4096;

std::map<Address, Block>& blocks = *new std::map<Address, Block>;
std::vector<Address>& freed = *new std::vector<Address>;
size_t first_freed = 0, freed_bytes = 0;
Address top = BASE;

// Reserves the addresses and the memory of their contents, which needs pages only once they are written.
void reserve() {
    if (top != BASE) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* addresses = mmap(reinterpret_cast<void*>(BASE), CAPACITY, PROT_NONE, flags, -1, 0);
    void* contents = mmap(reinterpret_cast<void*>(BASE + DISTANCE), CAPACITY, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (addresses != reinterpret_cast<void*>(BASE) || contents != reinterpret_cast<void*>(BASE + DISTANCE)) {
        fprintf(stderr, "stand-in: the addresses of the device's memory are not free\n");
        abort();
    }
}

size_t up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// The first byte that has changed; -1 if none has.
long changed(Address start, size_t size) {
    const char* bytes = host_of(start);
    static const std::vector<char> wanted(1 << 16, char(UNWRITTEN));
    for (size_t at = 0; at < size; at += wanted.size()) {
        size_t part = size - at < wanted.size() ? size - at : wanted.size();
        if (!memcmp(bytes + at, wanted.data(), part)) continue;
        while (bytes[at] == char(UNWRITTEN)) at++;
        return long(at);
    }
    return -1;
}

size_t guarded_end(const Block& block) { return up(block.size, ALIGNMENT) + GUARD; }

// Ends the quarantine of a block: its pages go back to the system.
void forget(Address start) {
    auto found = blocks.find(start);
    Block& block = found->second;
    if (changed(start, block.size) >= 0)
        report("a freed block of %zu bytes was written, at byte %ld", block.size, changed(start, block.size));
    uint64_t first = up(uint64_t(host_of(start)), PAGE), end = uint64_t(host_of(start)) + block.size;
    if (end / PAGE * PAGE > first) madvise(reinterpret_cast<void*>(first), end / PAGE * PAGE - first, MADV_DONTNEED);
    freed_bytes -= block.size;
    blocks.erase(found);
}

void shorten_quarantine(size_t most) {
    while (freed_bytes > most && first_freed < freed.size()) forget(freed[first_freed++]);
    if (first_freed == freed.size()) {
        freed.clear();
        first_freed = 0;
    }
}

}  // namespace

char* host_of(Address address) { return reinterpret_cast<char*>(address + DISTANCE); }

bool is_device_address(Address address) { return address >= BASE && address < top; }

Block* block_at(Address address) {
    auto behind = blocks.upper_bound(address + GUARD - 1);
    if (behind == blocks.begin()) return nullptr;
    Block& block = std::prev(behind)->second;
    return address + GUARD >= block.start && address < block.start + guarded_end(block) ? &block : nullptr;
}

Block& new_block(size_t size, int device) {
    reserve();
    Address start = top + GUARD;
    size_t whole = GUARD + up(size, ALIGNMENT) + GUARD;
    if (whole > CAPACITY || top + whole > BASE + CAPACITY) {
        fprintf(stderr, "stand-in: all addresses are used up\n");
        abort();
    }
    top += whole;
    memset(host_of(start - GUARD), UNWRITTEN, whole);
    Block block{start, size, size, device, nullptr};
    if (state().config.mutate_past && size >= 8) block.usable = size - 4;
    return blocks[start] = block;
}

void check_guards(Block& block, const char* who) {
    Address behind = block.start + block.usable;
    size_t rest = block.start + guarded_end(block) - behind;
    long before = changed(block.start - GUARD, GUARD), after = changed(behind, rest);
    if (before >= 0) report("%s wrote %ld bytes before a block of %zu bytes", who, long(GUARD) - before, block.usable);
    if (after >= 0)
        report("%s wrote past the end of a block of %zu bytes, at byte %ld", who, block.usable, long(block.usable) + after);
    memset(host_of(block.start - GUARD), UNWRITTEN, GUARD);
    // What a mutation takes for the guard is an element to the kernels that follow.
    if (after >= 0 && block.usable == block.size) memset(host_of(behind), UNWRITTEN, rest);
    if (after >= 0) block.usable = block.size;
}

void free_block(Block& block) {
    check_guards(block, "somebody");
    block.life = FREED;
    memset(host_of(block.start), UNWRITTEN, block.size);
    freed.push_back(block.start);
    freed_bytes += block.size;
    shorten_quarantine(QUARANTINE);
}

Block* live_block(Address start, size_t size, int device, std::string& why) {
    Block* block = block_at(start);
    unsigned long long at = start;
    if (!block) {
        why = formatted("%#llx is no address of a block", at);
    } else if (block->life == FREED) {
        why = formatted("%#llx lies in a block of %zu bytes that is freed", at, block->size);
    } else if (block->life == PLANNED) {
        why = formatted("%#llx lies in a block that another stream has not allocated yet", at);
    } else if (start < block->start || size > block->size || start - block->start > block->size - size) {
        why = formatted("%zu bytes at byte %lld are beyond a block of %zu", size, (long long)(start - block->start), block->size);
    } else if (block->device != device) {
        why = formatted("%#llx is an address of device %d, not %d", at, block->device, device);
    } else {
        return block;
    }
    return nullptr;
}

size_t release_blocks(int device, std::string& examples) {
    size_t count = 0;
    std::vector<Address> all;
    for (auto& [start, block] : blocks)
        if (block.device == device && block.life != FREED) all.push_back(start);
    for (Address start : all) {
        Block& block = blocks[start];
        if (!block.freed_at_call && ++count <= 3) examples += formatted("%s%zu bytes", count > 1 ? ", " : "", block.size);
        free_block(block);
    }
    shorten_quarantine(0);
    return count;
}

// ── The host's memory ──

bool read_host(void* to, uint64_t from, size_t size) {
    iovec here{to, size}, there{reinterpret_cast<void*>(from), size};
    ssize_t count = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (count < 0 && errno != EFAULT) {
        memcpy(to, there.iov_base, size);
        return true;
    }
    return count == ssize_t(size);
}

bool write_host(uint64_t to, const void* from, size_t size) {
    iovec here{const_cast<void*>(from), size}, there{reinterpret_cast<void*>(to), size};
    ssize_t count = process_vm_writev(getpid(), &here, 1, &there, 1, 0);
    if (count < 0 && errno != EFAULT) {
        memcpy(there.iov_base, from, size);
        return true;
    }
    return count == ssize_t(size);
}

}  // namespace standin
