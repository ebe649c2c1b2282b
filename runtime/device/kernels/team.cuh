// Lines of elements, and the threads that work on a line together.
#pragma once
#include "device.cuh"

// The threads of a block in teams of `size`, a power of 2 up to BLOCK; each works on one line at a time. Members of a
// team are neighbors if `adjacent`, which suits lines whose elements are; else the teams' members of one number are.
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

// `join` of what the members of each team give, in each of them. All threads of the block call it.
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

// Lines of a tensor `[…, n, inner]`, `count` in all.
struct Lines {
    Teams teams;
    u32 count, n, inner;
};

// Where the line's first element stands; the next one is `inner` elements on.
HOST_DEVICE u32 start_of(const Lines& lines, u32 line) {
    u32 outer = line / lines.inner;
    return outer * lines.n * lines.inner + (line - outer * lines.inner);
}

// `body(line, n)` for each line, by its team; n is 0 for a team that has no line while others do. `body` may join what its
// team finds.
template <class Body> HOST_DEVICE void for_each_line(const Lines& lines, Body body) {
    u32 teams = teams_of_block(lines.teams);
    for (u32 start = blockIdx.x * teams; start < lines.count; start += gridDim.x * teams) {
        u32 line = start + team_number(lines.teams);
        body(line, line < lines.count ? lines.n : 0);
    }
}

// Elements that a thread adds up in their own type; the sums of so many are added up as f64.
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

// An element of a line and its place there.
const u32 NOWHERE = 0xffffffff;
template <class T> struct Standing {
    T value;
    u32 place;
};

// Which of two elements comes first: the greater one, or the smaller if `smallest`; of equal ones the first, or the last
// if `last`. One that stands nowhere comes last. A NaN stands nowhere, but for one at place 0, which comes first.
struct Foremost {
    u32 smallest, last;
    template <class T> HOST_DEVICE Standing<T> operator()(const Standing<T>& a, const Standing<T>& b) const {
        if (b.place == NOWHERE || (a.place != NOWHERE && a.value != a.value)) return a;
        if (a.place == NOWHERE || b.value != b.value) return b;
        if (a.value == b.value) return (last != 0) == (b.place > a.place) ? b : a;
        return (smallest != 0) == (b.value < a.value) ? b : a;
    }
    // `best`, or the element at a place if that comes first.
    template <class T> HOST_DEVICE Standing<T> offered(const Standing<T>& best, T value, u32 place) const {
        if (value != value && place != 0) return best;
        return (*this)(best, Standing<T>{value, place});
    }
};
