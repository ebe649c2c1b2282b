// Launches. The call copies the parameters. The kernel runs in the order of its stream, with addresses of the host.
#include <cstring>

#include "queue.h"

extern "C" void emulator_run(const void* entry, const uint32_t* blocks, uint32_t threads, const void* params, bool backwards);

namespace standin {

namespace {

struct Launch {
    Kernel kernel;
    void* module;
    int device;
    uint32_t blocks[3], threads;
    std::vector<char> parameters;
};

// Replaces the device addresses in the parameters with host addresses, and returns their blocks. Writes an error of an
// address to `why`.
std::vector<Block*> translate(Launch& launch, std::string& why) {
    std::vector<Block*> found;
    for (size_t at = 0; at + sizeof(Address) <= launch.parameters.size(); at += sizeof(Address)) {
        Address address;
        memcpy(&address, &launch.parameters[at], sizeof address);
        if (!is_device_address(address)) continue;
        Block* block = block_at(address);
        // A kernel never uses an address after the last element.
        bool is_inside = block && address >= block->start && address < block->start + block->size;
        if ((is_inside && !live_block(address, 1, launch.device, why)) || !block)
            why = formatted("byte %zu of its parameters: %s", at, block ? why.c_str() : "an address of no block");
        if (block) found.push_back(block);
        char* host = host_of(address);
        memcpy(&launch.parameters[at], &host, sizeof host);
    }
    return found;
}

void run(Launch& launch, Lock& lock) {
    const char* name = launch.kernel.name.c_str();
    if (!state().modules.find(launch.module)) report("the module of %s is unloaded before it has run", name);
    if (++state().launches == state().config.crash) return lose(lock, LAUNCH_FAILED);
    std::string why;
    std::vector<Block*> used = translate(launch, why);
    if (!why.empty()) {
        report("%s has, in %s", name, why.c_str());
        return lose(lock, ILLEGAL_ADDRESS);
    }
    bool backwards = draw() & 1;
    lock.unlock();
    emulator_run(launch.kernel.entry, launch.blocks, launch.threads, launch.parameters.data(), backwards);
    lock.lock();
    for (Block* each : used) check_guards(*each, name);
}

}  // namespace

}  // namespace standin

using namespace standin;

extern "C" int cuLaunchKernel(void* handle, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                              unsigned threads_z, unsigned shared, void* stream_handle, void** parameters, void** extra) {
    ENTER("cuLaunchKernel", CONTEXT);
    auto function = state().functions.find(handle);
    auto stream = find_stream(stream_handle);
    if (!function || !stream || !state().modules.find(function->module)) return INVALID_HANDLE;
    if (function->device != stream->device) return INVALID_CONTEXT;
    if (x == 0 || x > 0x7fffffff || y == 0 || y > 65535 || z == 0 || z > 65535) return INVALID_VALUE;
    if (threads_x == 0 || threads_x > 1024 || threads_y != 1 || threads_z != 1) return INVALID_VALUE;
    if (shared > 48 << 10 || !parameters || !parameters[0] || extra) return INVALID_VALUE;
    auto launch = std::make_shared<Launch>(Launch{function->kernel, function->module, stream->device, {x, y, z}, threads_x, {}});
    const char* first = static_cast<const char*>(parameters[0]);
    launch->parameters.assign(first, first + function->kernel.parameters);
    Operation operation;
    operation.name = function->kernel.name;
    operation.run = [launch](Lock& lock) { run(*launch, lock); };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}
