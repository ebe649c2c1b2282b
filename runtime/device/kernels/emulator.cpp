// Fibers switch with longjmp, which the fortified C library takes for an error.
#undef _FORTIFY_SOURCE
#include "emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
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

// A fiber runs one thread of each block. Its first entry is a change of context; afterwards it continues at `place` by a
// jump, which does not save signal masks, and so needs no system call.
struct Fiber {
    jmp_buf place;
    std::unique_ptr<char[]> stack;
    bool ended, waits_for_block, waits_for_warp;
};

struct Block {
    jmp_buf scheduler;
    std::vector<Fiber> fibers;
    Fiber* current;
    const Entry* entry;
    const void* params;
    bool backwards;
};

Block block;

// The index of the `i`th of `count` to run.
u32 in_turn(u32 i, u32 count) { return block.backwards ? count - 1 - i : i; }

// Returns to the scheduler, until it continues the fiber.
void leave(Fiber* self) {
    if (!_setjmp(self->place)) _longjmp(block.scheduler, 1);
}

void wait(bool Fiber::*reason) {
    Fiber* self = block.current;
    u32 x = threadIdx.x;
    self->*reason = true;
    leave(self);
    threadIdx.x = x;
}

// Runs the fiber's thread of one block after the other.
void run_threads() {
    for (;;) {
        block.entry->run(block.params);
        block.current->ended = true;
        leave(block.current);
    }
}

void enter_stack(Fiber* fiber) {
    ucontext_t first;
    fiber->stack.reset(new char[STACK]);
    getcontext(&first);
    first.uc_stack.ss_sp = fiber->stack.get();
    first.uc_stack.ss_size = STACK;
    first.uc_link = nullptr;
    makecontext(&first, run_threads, 0);
    setcontext(&first);
}

// Runs a thread until it waits or ends.
void go_on(Fiber* fiber) {
    block.current = fiber;
    if (_setjmp(block.scheduler)) return;
    if (!fiber->stack) enter_stack(fiber);
    _longjmp(fiber->place, 1);
}

// Lets `fibers[from..to]` continue if all that have not ended are waiting.
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

// Runs each of `fibers[from..to]` until it waits. Returns whether any could run.
bool run_to_waits(u32 from, u32 to) {
    bool went_on = false;
    for (u32 i = 0; i < to - from; i++) {
        u32 number = from + in_turn(i, to - from);
        Fiber& fiber = block.fibers[number];
        if (fiber.ended || fiber.waits_for_block || fiber.waits_for_warp) continue;
        threadIdx = {number, 0, 0};
        go_on(&fiber);
        went_on = true;
    }
    return went_on;
}

// Runs a warp as far as possible without the other warps of the block. This reveals reads that lack a barrier.
bool run_warp(u32 from, u32 to) {
    bool went_on = false;
    while (run_to_waits(from, to)) {
        release(from, to, &Fiber::waits_for_warp);
        went_on = true;
    }
    return went_on;
}

void run_together(u32 threads) {
    const u32 WARP = 32;
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    for (u32 i = 0; i < threads; i++) {
        Fiber& fiber = block.fibers[i];
        fiber.ended = fiber.waits_for_block = fiber.waits_for_warp = false;
    }
    u32 warps = (threads + WARP - 1) / WARP;
    while (!all_ended(threads)) {
        bool went_on = false;
        for (u32 i = 0; i < warps; i++) {
            u32 from = in_turn(i, warps) * WARP;
            went_on |= run_warp(from, from + WARP < threads ? from + WARP : threads);
        }
        if (!went_on) {
            fprintf(stderr, "%s: threads of a block wait for each other at different places\n", block.entry->name);
            abort();
        }
        release(0, threads, &Fiber::waits_for_block);
    }
}

void run_block(u32 threads) {
    if (block.entry->waits) return run_together(threads);
    for (u32 i = 0; i < threads; i++) {
        threadIdx = {in_turn(i, threads), 0, 0};
        block.entry->run(block.params);
    }
}

}  // namespace

void __syncthreads() { wait(&Fiber::waits_for_block); }
void __syncwarp(u32) { wait(&Fiber::waits_for_warp); }

// Returns the kernel with a name, or null.
extern "C" const Entry* emulator_find(const char* name) {
    for (const Entry* entry = Entry::all; entry; entry = entry->next)
        if (!strcmp(entry->name, name)) return entry;
    return nullptr;
}

extern "C" u64 emulator_parameters(const Entry* entry) { return entry->size; }

// Runs a kernel with `blocks` of `threads`, forwards or backwards. No other kernel may run at the same time.
extern "C" void emulator_run(const Entry* entry, const u32* blocks, u32 threads, const void* params, bool backwards) {
    gridDim = {blocks[0], blocks[1], blocks[2]};
    blockDim = {threads, 1, 1};
    block.entry = entry;
    block.params = params;
    block.backwards = backwards;
    for (u32 z = 0; z < blocks[2]; z++)
        for (u32 y = 0; y < blocks[1]; y++)
            for (u32 x = 0; x < blocks[0]; x++) {
                blockIdx = {in_turn(x, blocks[0]), in_turn(y, blocks[1]), in_turn(z, blocks[2])};
                run_block(threads);
            }
}
