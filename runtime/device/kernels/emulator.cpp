#include "emulator.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

Place threadIdx, blockIdx, blockDim, gridDim;
Entry* Entry::all = nullptr;

// ── 16-bit floating point ──

f32 widen(bf16 x) { return __uint_as_float((u32)x.bits << 16); }

f32 widen(f16 x) {
    u32 sign = (u32)(x.bits & 0x8000) << 16, exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
    if (exponent == 31) return __uint_as_float(sign | 0x7f800000 | mantissa << 13);
    if (exponent != 0) return __uint_as_float(sign | (exponent + 112) << 23 | mantissa << 13);
    return __uint_as_float(sign | __float_as_uint((f32)mantissa * 0x1p-24f));
}

void narrow(f32 x, bf16* y) {
    u32 bits = __float_as_uint(x);
    y->bits = x != x ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

void narrow(f32 x, f16* y) {
    u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
    f32 size = std::fabs(x);
    if (x != x) {
        y->bits = sign | 0x7e00;
    } else if (size >= 65520) {
        y->bits = sign | 0x7c00;
    } else if (size < 0x1p-14f) {
        y->bits = sign | (u32)std::nearbyint(size * 0x1p24f);
    } else {
        u32 rounded = __float_as_uint(size) + 0xfff + (bits >> 13 & 1);
        y->bits = sign | ((rounded >> 13) - (112 << 10));
    }
}

// ── The threads of a block ──

namespace {

const size_t STACK = 64 << 10;

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    bool ended, waits_for_block, waits_for_warp;
};

struct Block {
    ucontext_t scheduler;
    std::vector<Fiber> fibers;
    Fiber* current;
    const Entry* entry;
    const void* params;
};

Block block;

void wait(bool Fiber::*reason) {
    Fiber* self = block.current;
    u32 x = threadIdx.x;
    self->*reason = true;
    swapcontext(&self->context, &block.scheduler);
    threadIdx.x = x;
}

void start() {
    Fiber* self = block.current;
    block.entry->run(block.params);
    self->ended = true;
    swapcontext(&self->context, &block.scheduler);
}

// Lets `fibers[from..to]` go on where all that have not ended wait.
void release(u32 from, u32 to, bool Fiber::*reason) {
    for (u32 i = from; i < to; i++)
        if (!block.fibers[i].ended && !(block.fibers[i].*reason)) return;
    for (u32 i = from; i < to; i++) block.fibers[i].*reason = false;
}

bool all_ended(u32 threads) {
    for (u32 i = 0; i < threads; i++)
        if (!block.fibers[i].ended) return false;
    return true;
}

void run_together(u32 threads) {
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    for (u32 i = 0; i < threads; i++) {
        Fiber& fiber = block.fibers[i];
        fiber.ended = fiber.waits_for_block = fiber.waits_for_warp = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, start, 0);
    }
    while (!all_ended(threads)) {
        bool went_on = false;
        for (u32 i = 0; i < threads; i++) {
            Fiber& fiber = block.fibers[i];
            if (fiber.ended || fiber.waits_for_block || fiber.waits_for_warp) continue;
            block.current = &fiber;
            threadIdx = {i, 0, 0};
            swapcontext(&block.scheduler, &fiber.context);
            went_on = true;
        }
        if (!went_on) {
            fprintf(stderr, "%s: threads of a block wait for each other at different places\n", block.entry->name);
            abort();
        }
        for (u32 i = 0; i < threads; i += 32) release(i, i + 32 < threads ? i + 32 : threads, &Fiber::waits_for_warp);
        release(0, threads, &Fiber::waits_for_block);
    }
}

}  // namespace

void __syncthreads() { wait(&Fiber::waits_for_block); }
void __syncwarp(u32) { wait(&Fiber::waits_for_warp); }

// The kernel of a name; null where there is none.
extern "C" const Entry* emulator_find(const char* name) {
    for (const Entry* entry = Entry::all; entry; entry = entry->next)
        if (!strcmp(entry->name, name)) return entry;
    return nullptr;
}

extern "C" u64 emulator_parameters(const Entry* entry) { return entry->size; }

// Runs a kernel in blocks of threads; one kernel at a time.
extern "C" void emulator_run(const Entry* entry, const u32* blocks, u32 threads, const void* params) {
    static std::mutex turn;
    std::lock_guard<std::mutex> held(turn);
    gridDim = {blocks[0], blocks[1], blocks[2]};
    blockDim = {threads, 1, 1};
    block.entry = entry;
    block.params = params;
    for (u32 z = 0; z < blocks[2]; z++)
        for (u32 y = 0; y < blocks[1]; y++)
            for (u32 x = 0; x < blocks[0]; x++) {
                blockIdx = {x, y, z};
                if (entry->waits) {
                    run_together(threads);
                    continue;
                }
                for (u32 i = 0; i < threads; i++) {
                    threadIdx = {i, 0, 0};
                    entry->run(params);
                }
            }
}
