// Lines of elements, and teams of threads that work on one line together.
#pragma once
#include "device.cuh"

// Teams of `size` threads of a block; `size` is a power of 2 up to BLOCK. Each team works on one line at a time. If
// `adjacent`, neighboring threads belong to the same team, which suits contiguous lines. Otherwise, neighboring threads
// belong to neighboring teams.
struct Teams {
    u32 size, adjacent;
};

HOST_DEVICE u32 teams_of_block(const Teams& teams) { return BLOCK / teams.size; }
HOST_DEVICE u32 team_number(const Teams& teams) {
    return teams.adjacent ? threadIdx.x / teams.size : threadIdx.x % teams_of_block(teams);
}
HOST_DEVICE u32 member_number(const Teams& teams) {
    return teams.adjacent ? threadIdx.x % teams.size : threadIdx.x / teams_of_block(teams);
}

// Joins the values of each team's members, and returns the result to all of them. Called by all threads of the block.
template <class T, class Join> HOST_DEVICE T joined(const Teams& teams, T value, Join join) {
    __shared__ T given[BLOCK];
    u32 apart = teams.adjacent ? 1 : teams_of_block(teams), number = member_number(teams);
    bool within_warp = teams.adjacent && teams.size <= 32;
    given[threadIdx.x] = value;
    for (u32 half = teams.size / 2; half > 0; half /= 2) {
        if (within_warp) __syncwarp(); else __syncthreads();
        if (number < half) given[threadIdx.x] = join(given[threadIdx.x], given[threadIdx.x + half * apart]);
    }
    __syncthreads();
    value = given[threadIdx.x - number * apart];
    __syncthreads();
    return value;
}

// The lines of a tensor `[…, n, inner]`, `count` in total.
struct Lines {
    Teams teams;
    u32 count, n, inner;
};

// The index of the line's first element; the stride of its elements is `inner`.
HOST_DEVICE u32 start_of(const Lines& lines, u32 line) {
    u32 outer = line / lines.inner;
    return outer * lines.n * lines.inner + (line - outer * lines.inner);
}

// Calls `body(line, n)` for each line, on its team. n is 0 for a team without a line while other teams have one. `body`
// may call `joined`.
template <class Body> HOST_DEVICE void for_each_line(const Lines& lines, Body body) {
    u32 teams = teams_of_block(lines.teams);
    for (u32 start = blockIdx.x * teams; start < lines.count; start += gridDim.x * teams) {
        u32 line = start + team_number(lines.teams);
        body(line, line < lines.count ? lines.n : 0);
    }
}

// The elements that a thread sums in their own type. The partial sums are added as f64.
const u32 PIECE = 32;

// The sum of `value(i)` for i = from, from + step, … below `to`.
template <class Value> HOST_DEVICE f64 sum_of(u32 from, u32 to, u32 step, Value value) {
    f64 total = 0;
    for (u32 i = from; i < to;) {
        decltype(value(i)) piece = 0;
        for (u32 k = 0; k < PIECE && i < to; k++, i += step) piece += value(i);
        total += piece;
    }
    return total;
}

// An element of a line and its index.
const u32 NOWHERE = 0xffffffff;
template <class T> struct Candidate {
    T value;
    u32 place;
};

// The order of elements: the larger one comes first, or the smaller one if `smallest`; of equal ones the first, or the
// last if `last`. Elements at NOWHERE come last. NaN is ignored, except at index 0, where it comes first.
struct CandidateOrder {
    u32 smallest, last;
    template <class T> HOST_DEVICE Candidate<T> operator()(const Candidate<T>& a, const Candidate<T>& b) const {
        if (b.place == NOWHERE || (a.place != NOWHERE && a.value != a.value)) return a;
        if (a.place == NOWHERE || b.value != b.value) return b;
        if (a.value == b.value) return (last != 0) == (b.place > a.place) ? b : a;
        return (smallest != 0) == (b.value < a.value) ? b : a;
    }
    // Returns `best`, or the element at `place` if that comes first.
    template <class T> HOST_DEVICE Candidate<T> offered(const Candidate<T>& best, T value, u32 place) const {
        if (value != value && place != 0) return best;
        return (*this)(best, Candidate<T>{value, place});
    }
};
