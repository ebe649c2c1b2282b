// The first k elements of each line in sorted order, and their indices.
//
// An element is mapped to a key: an unsigned integer in the requested order, equal for equal elements. A key and its
// index form an entry; no two entries of a line are equal. In short lines, each element counts the elements before it.
// In long lines, a radix select finds the last requested entry digit by digit; the entries up to it are then sorted.
#include "team.cuh"

struct TopKOf {
    // `entries` is [lines, list_len] with k ≤ list_len; those beyond k sort last.
    u64 x, values, indices, entries;
    u32 lines, n, inner, k, largest, list_len;
    // Whether the entries of a line are sorted.
    u32 sorted;
    // A step of sorting: orders the entries `reach` apart within runs of `run`; every other run is in descending order.
    u32 run, reach;
    u32 padding;
};

template <class K> struct EntryOf {
    K key;
    u32 place;
};
template <class K> HOST_DEVICE bool is_before(const EntryOf<K>& a, const EntryOf<K>& b) {
    return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// ── Keys: 0 and −0 have the same key, and all NaNs have the largest one. ──

HOST_DEVICE u32 topk_key(f32 x) {
    u32 bits = __float_as_uint(x), size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0xffffffff;
    return (bits == size ? size : 0 - size) ^ 0x80000000;
}
HOST_DEVICE u32 topk_key(f16 x) { return topk_key(widen(x)); }
HOST_DEVICE u32 topk_key(bf16 x) { return topk_key(widen(x)); }
HOST_DEVICE u64 topk_key(f64 x) {
    u64 bits, sign = (u64)1 << 63;
    memcpy(&bits, &x, 8);
    u64 size = bits & ~sign;
    if (size > 0x7ff0000000000000) return ~(u64)0;
    return (bits == size ? size : 0 - size) ^ sign;
}
HOST_DEVICE u32 topk_key(i32 x) { return (u32)x ^ 0x80000000; }
HOST_DEVICE u32 topk_key(i16 x) { return topk_key((i32)x); }
HOST_DEVICE u32 topk_key(i8 x) { return topk_key((i32)x); }
HOST_DEVICE u64 topk_key(i64 x) { return (u64)x ^ (u64)1 << 63; }
HOST_DEVICE u32 topk_key(u32 x) { return x; }
HOST_DEVICE u32 topk_key(u16 x) { return x; }
HOST_DEVICE u32 topk_key(u8 x) { return x; }
HOST_DEVICE u64 topk_key(u64 x) { return x; }

template <class T> using key_type = decltype(topk_key(T()));

// The entry at an index of a line that starts at `x`.
template <class T> HOST_DEVICE EntryOf<key_type<T>> entry_at(const TopKOf& p, const T* x, u32 place) {
    typedef key_type<T> K;
    K key = topk_key(x[place * p.inner]);
    return EntryOf<K>{p.largest ? (K)~key : key, place};
}
template <class T> HOST_DEVICE const T* line_of(const TopKOf& p, u32 line) {
    u32 outer = line / p.inner;
    return at<const T>(p.x) + outer * p.n * p.inner + (line - outer * p.inner);
}

// Writes the element at an index of a line to a rank of the result.
template <class T> HOST_DEVICE void put(const TopKOf& p, u32 line, u32 rank, u32 place) {
    u32 outer = line / p.inner, to = (outer * p.k + rank) * p.inner + (line - outer * p.inner);
    at<T>(p.values)[to] = line_of<T>(p, line)[place * p.inner];
    at<i64>(p.indices)[to] = place;
}

// Short lines: one thread per element.
template <class T> HOST_DEVICE void rank_all(const TopKOf& p) {
    for (u32 i = first(); i < p.lines * p.n; i += stride()) {
        u32 outer = i / (p.n * p.inner), rest = i - outer * p.n * p.inner, place = rest / p.inner;
        u32 line = outer * p.inner + (rest - place * p.inner), rank = 0;
        const T* x = line_of<T>(p, line);
        auto own = entry_at(p, x, place);
        for (u32 other = 0; other < p.n && rank < p.k; other++) rank += is_before(entry_at(p, x, other), own);
        if (rank < p.k) put<T>(p, line, rank, place);
    }
}

// ── Long lines: one block per line ──

// A digit is one byte.
const u32 DIGITS = 256;
struct Digit {
    u32 digit, wanted, count;
};

// Finds the digit of element number `wanted` (counted from 1), where `bins` holds the number of elements per digit.
// Returns the digit, the element's number among those with this digit, and their count. Called by all threads, each of
// which has one bin. Clears `bins`.
HOST_DEVICE Digit digit_of_element(u32* bins, u32 wanted, Digit* found) {
    u32 own = bins[threadIdx.x];
    for (u32 reach = 1; reach < DIGITS; reach *= 2) {
        u32 before = threadIdx.x >= reach ? bins[threadIdx.x - reach] : 0;
        __syncthreads();
        bins[threadIdx.x] += before;
        __syncthreads();
    }
    u32 through = bins[threadIdx.x], before = through - own;
    if (before < wanted && wanted <= through) *found = Digit{threadIdx.x, wanted - before, own};
    __syncthreads();
    Digit digit = *found;
    bins[threadIdx.x] = 0;
    __syncthreads();
    return digit;
}

// The index of the last of the first `wanted` elements with a key.
template <class T>
HOST_DEVICE u32 last_place(const TopKOf& p, const T* x, key_type<T> key, u32 wanted, u32* bins, Digit* found) {
    u32 last = 0;
    bool is_last = false;
    i32 shift = 32;
    while (shift > 0 && !is_last) {
        shift -= 8;
        if ((p.n - 1) >> shift == 0) continue;
        for (u32 i = threadIdx.x; i < p.n; i += blockDim.x) {
            bool matches = shift == 24 || (i ^ last) >> (shift + 8) == 0;
            if (matches && entry_at(p, x, i).key == key) atomicAdd(bins + ((i >> shift) & (DIGITS - 1)), 1u);
        }
        __syncthreads();
        Digit digit = digit_of_element(bins, wanted, found);
        last |= digit.digit << shift;
        wanted = digit.wanted;
        is_last = digit.count == wanted;
    }
    return last | ((1u << shift) - 1);
}

// The last of the first k entries.
template <class T> HOST_DEVICE EntryOf<key_type<T>> last_wanted(const TopKOf& p, const T* x) {
    typedef key_type<T> K;
    const i32 bits = 8 * sizeof(K);
    __shared__ u32 bins[DIGITS];
    __shared__ Digit found;
    EntryOf<K> last = {0, 0};
    u32 wanted = p.k;
    bool is_last = p.k == p.n;
    i32 shift = bits;
    bins[threadIdx.x] = 0;
    __syncthreads();
    while (shift > 0 && !is_last) {
        shift -= 8;
        for (u32 i = threadIdx.x; i < p.n; i += blockDim.x) {
            K key = entry_at(p, x, i).key;
            bool matches = shift + 8 == bits || (key ^ last.key) >> (shift + 8) == 0;
            if (matches) atomicAdd(bins + ((key >> shift) & (DIGITS - 1)), 1u);
        }
        __syncthreads();
        Digit digit = digit_of_element(bins, wanted, &found);
        last.key |= (K)digit.digit << shift;
        wanted = digit.wanted;
        is_last = digit.count == wanted;
    }
    // The remaining digits do not matter.
    if (is_last) return EntryOf<K>{shift == bits ? (K)~(K)0 : (K)(last.key | (((K)1 << shift) - 1)), NOWHERE};
    last.place = last_place(p, x, last.key, wanted, bins, &found);
    return last;
}

template <class T> HOST_DEVICE void select(const TopKOf& p) {
    typedef key_type<T> K;
    __shared__ u32 filled;
    for (u32 line = blockIdx.x; line < p.lines; line += gridDim.x) {
        const T* x = line_of<T>(p, line);
        EntryOf<K>* entries = at<EntryOf<K>>(p.entries) + (u64)line * p.list_len;
        EntryOf<K> last = last_wanted(p, x);
        if (threadIdx.x == 0) filled = 0;
        __syncthreads();
        // In any order; they are sorted afterwards.
        for (u32 i = threadIdx.x; i < p.n; i += blockDim.x) {
            EntryOf<K> entry = entry_at(p, x, i);
            if (!is_before(last, entry)) entries[atomicAdd(&filled, 1u)] = entry;
        }
        for (u32 i = p.k + threadIdx.x; i < p.list_len; i += blockDim.x) entries[i] = EntryOf<K>{(K)~(K)0, NOWHERE};
        __syncthreads();
    }
}

// ── Sorting ──

// One step of sorting each line's entries, whose number is a power of 2: one thread per pair.
template <class K> HOST_DEVICE void sort_step(const TopKOf& p) {
    u32 pairs = p.list_len / 2;
    for (u32 i = first(); i < p.lines * pairs; i += stride()) {
        u32 line = i / pairs, pair = i - line * pairs, a = pair / p.reach * p.reach * 2 + pair % p.reach;
        EntryOf<K>* low = at<EntryOf<K>>(p.entries) + (u64)line * p.list_len + a;
        EntryOf<K>* high = low + p.reach;
        bool backwards = (a & p.run) != 0;
        EntryOf<K> x = *low, y = *high;
        if (is_before(y, x) != backwards) {
            *low = y;
            *high = x;
        }
    }
}

template <class T> HOST_DEVICE void write_entries(const TopKOf& p) {
    typedef EntryOf<key_type<T>> Entry;
    for (u32 i = first(); i < p.lines * p.k; i += stride()) {
        u32 line = i / p.k, number = i - line * p.k, rank = number;
        const Entry* entries = at<const Entry>(p.entries) + (u64)line * p.list_len;
        Entry own = entries[number];
        if (!p.sorted) {
            rank = 0;
            for (u32 other = 0; other < p.k; other++) rank += is_before(entries[other], own);
        }
        put<T>(p, line, rank, own.place);
    }
}

KERNEL(topk_step_u32, TopKOf, sort_step<u32>)
KERNEL(topk_step_u64, TopKOf, sort_step<u64>)

#define TOPK(T)                                       \
    KERNEL(topk_rank_##T, TopKOf, rank_all<T>)        \
    COOPERATIVE(topk_select_##T, TopKOf, select<T>)   \
    KERNEL(topk_write_##T, TopKOf, write_entries<T>)

TOPK(f16)
TOPK(bf16)
TOPK(f32)
TOPK(f64)
TOPK(i8)
TOPK(i16)
TOPK(i32)
TOPK(i64)
TOPK(u8)
TOPK(u16)
TOPK(u32)
TOPK(u64)
