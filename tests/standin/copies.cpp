// Copies and fills. They run in the order of their stream, and an upload reads its source only then.
#include <algorithm>
#include <cstring>

#include "queue.h"

namespace standin {

namespace {

// The largest upload that a driver copies at the call. After larger ones, `strict` requires a wait.
const size_t SMALL = 64 << 10;
const size_t PART = 4 << 20;

// A checksum. `sum` is the checksum of the preceding bytes, whose number is a multiple of 8.
uint64_t checksum(uint64_t sum, const void* bytes, size_t size) {
    const char* at = static_cast<const char*>(bytes);
    uint64_t lanes[4] = {sum, 1, 2, 3}, words[4];
    const uint64_t FACTOR = 0x9e3779b97f4a7c15;
    for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
        memcpy(words, at, sizeof words);
        for (int i = 0; i < 4; i++) lanes[i] = (lanes[i] ^ words[i]) * FACTOR;
    }
    for (; size > 0; at++, size--) lanes[0] = (lanes[0] ^ (unsigned char)*at) * FACTOR;
    for (int i = 1; i < 4; i++) lanes[0] = (lanes[0] ^ lanes[i] ^ lanes[0] >> 29) * FACTOR;
    return lanes[0];
}

uint64_t checksum_of(const void* bytes, size_t size) {
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += PART)
        sum = checksum(sum, static_cast<const char*>(bytes) + at, std::min(PART, size - at));
    return sum;
}

struct Upload {
    Address to;
    uint64_t from;
    size_t size;
    int device;
    uint64_t sum = 0;
    std::vector<char> taken;  // where it was read at the call
};

void run_upload(const Upload& upload, Lock& lock) {
    std::string why;
    Block* block = live_block(upload.to, upload.size, upload.device, why);
    if (!block) {
        report("an upload of %zu bytes: %s", upload.size, why.c_str());
        return lose(lock, ILLEGAL_ADDRESS);
    }
    char* to = host_of(upload.to);
    if (!upload.taken.empty()) {
        memcpy(to, upload.taken.data(), upload.size);
        return;
    }
    uint64_t sum = 0;
    for (size_t at = 0; at < upload.size; at += PART) {
        size_t part = std::min(PART, upload.size - at);
        if (!read_host(to + at, upload.from + at, part))
            return report("the source of an upload of %zu bytes was freed before the copy ran", upload.size);
        sum = checksum(sum, to + at, part);
    }
    if (sum != upload.sum) report("the source of an upload of %zu bytes changed before the copy ran", upload.size);
}

void run_download(uint64_t to, Address from, size_t size, int device, Lock& lock) {
    std::string why;
    if (!live_block(from, size, device, why)) {
        report("a download of %zu bytes: %s", size, why.c_str());
        return lose(lock, ILLEGAL_ADDRESS);
    }
    // Without a wait, other code may use the target by now.
    if (state().config.mutate_wait) return;
    if (!write_host(to, host_of(from), size))
        report("the target of a download of %zu bytes was freed before the copy ran", size);
}

// Simulates a module that frees the source too early, or reuses it.
void overwrite(uint64_t from, size_t size) {
    std::vector<char> other(std::min(PART, size), char(0x5a));
    for (size_t at = 0; at < size; at += PART) write_host(from + at, other.data(), std::min(PART, size - at));
}

}  // namespace

}  // namespace standin

using namespace standin;

extern "C" int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t size, void* handle) {
    ENTER("cuMemcpyHtoDAsync_v2", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    if (!from && size > 0) return INVALID_VALUE;
    const Configuration& config = state().config;
    Pinned* pinned = pinned_of(from, size);
    auto upload = std::make_shared<Upload>(Upload{to, uint64_t(from), size, stream->device});
    bool is_taken = !pinned && (config.staged_uploads || (config.strict && size <= SMALL));
    if (is_taken) upload->taken.assign(static_cast<const char*>(from), static_cast<const char*>(from) + size);
    else upload->sum = checksum_of(from, size);
    if (pinned) pinned->pending++;
    Operation operation;
    operation.name = "cuMemcpyHtoDAsync_v2";
    operation.run = [upload, is_pinned = pinned != nullptr](Lock& lock) {
        if (Pinned* source = is_pinned ? pinned_of(reinterpret_cast<void*>(upload->from), upload->size) : nullptr) source->pending--;
        run_upload(*upload, lock);
    };
    enqueue(lock, stream, std::move(operation));
    if (config.mutate_source) overwrite(upload->from, size);
    if (config.strict && !pinned && !is_taken) must_be_waited_for(stream, size);
    return SUCCESS;
}

extern "C" int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t size, void* handle) {
    ENTER("cuMemcpyDtoHAsync_v2", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    if (!to && size > 0) return INVALID_VALUE;
    Pinned* pinned = pinned_of(to, size);
    bool is_late = pinned || state().config.late_downloads;
    if (pinned) pinned->pending++;
    // A host that does not wait for the copy reads these bytes.
    memset(to, 0xa5, size);
    Operation operation;
    operation.name = "cuMemcpyDtoHAsync_v2";
    operation.run = [=, device = stream->device, is_pinned = pinned != nullptr](Lock& lock) {
        if (Pinned* target = is_pinned ? pinned_of(to, size) : nullptr) target->pending--;
        run_download(uint64_t(to), from, size, device, lock);
    };
    enqueue(lock, stream, std::move(operation));
    return is_late ? int(SUCCESS) : wait_for(lock, stream);
}

extern "C" int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void* handle) {
    ENTER("cuMemcpyDtoDAsync_v2", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    Operation operation;
    operation.name = "cuMemcpyDtoDAsync_v2";
    operation.run = [=, device = stream->device](Lock& lock) {
        std::string why;
        if (!live_block(from, size, device, why) || !live_block(to, size, device, why)) {
            report("a copy of %zu bytes: %s", size, why.c_str());
            return lose(lock, ILLEGAL_ADDRESS);
        }
        if (from < to + size && to < from + size) report("a copy of %zu bytes overlaps itself", size);
        memmove(host_of(to), host_of(from), size);
    };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}

extern "C" int cuMemsetD8Async(Address to, unsigned char value, size_t size, void* handle) {
    ENTER("cuMemsetD8Async", CONTEXT);
    auto stream = find_stream(handle);
    if (!stream) return INVALID_HANDLE;
    Operation operation;
    operation.name = "cuMemsetD8Async";
    operation.run = [=, device = stream->device](Lock& lock) {
        std::string why;
        if (!live_block(to, size, device, why)) {
            report("a fill of %zu bytes: %s", size, why.c_str());
            return lose(lock, ILLEGAL_ADDRESS);
        }
        memset(host_of(to), value, size);
    };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}
