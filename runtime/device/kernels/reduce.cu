// Sums and products, and functions of them.
#include "reduce.cuh"

template <class T> HOST_DEVICE f64 real_result(const Reduce& p, f64 total) {
    switch (p.function) {
        case Mean: return total / (p.n > 0 ? p.n : 1);
        case L2: return sqrt(total);
        case LogSum: return log(total);
        default: return total;
    }
}

template <class T> HOST_DEVICE void write_result(const Reduce& p, u32 i, f64 total) {
    narrow((wide<T>)real_result<T>(p, total), at<T>(p.y) + i);
}

// A total of integers holds the low 64 bits.
template <class T> HOST_DEVICE void write_result(const Reduce& p, u32 i, u64 total) {
    const bool is_signed = T(-1) < T(0);
    u32 count = p.n > 0 ? p.n : 1;
    f64 real = is_signed ? (f64)(i64)total : (f64)total;
    T result;
    switch (p.function) {
        case Mean: result = is_signed ? (T)((i64)total / count) : (T)(total / count); break;
        case L2: case LogSum: result = truncated_real<T>(real_result<T>(p, real), is_signed); break;
        default: result = (T)total;
    }
    at<T>(p.y)[i] = result;
}

// The types of a thread's partial sums and of a team's total.
template <class T> struct Totals { typedef wide<T> Lane; typedef f64 Total; };
template <> struct Totals<i32> { typedef u64 Lane; typedef u64 Total; };
template <> struct Totals<i64> { typedef u64 Lane; typedef u64 Total; };
template <> struct Totals<u32> { typedef u64 Lane; typedef u64 Total; };
template <> struct Totals<u64> { typedef u64 Lane; typedef u64 Total; };

template <class T> struct SumRule {
    typedef T In;
    typedef typename Totals<T>::Lane Lane;
    typedef typename Totals<T>::Total Total;
    static HOST_DEVICE Lane start(u32) { return 0; }
    static HOST_DEVICE Lane step(u32 function, Lane lane, T element, u32) {
        auto x = widen(element);
        Lane value = (Lane)x;
        if (function == L1 && x < 0) value = 0 - value;
        if (function == L2 || function == SumSquare) value *= value;
        return lane + value;
    }
    static HOST_DEVICE Total total(Lane lane) { return lane; }
    static HOST_DEVICE Total add(u32, Total a, Total b) { return a + b; }
    static HOST_DEVICE void finish(const Reduce& p, u32 i, Total total) { write_result<T>(p, i, total); }
};

template <class T> struct ProductRule {
    typedef T In;
    typedef typename Totals<T>::Total Lane;
    typedef Lane Total;
    static HOST_DEVICE Lane start(u32) { return 1; }
    static HOST_DEVICE Lane step(u32, Lane lane, T element, u32) { return lane * (Lane)widen(element); }
    static HOST_DEVICE Total total(Lane lane) { return lane; }
    static HOST_DEVICE Total add(u32, Total a, Total b) { return a * b; }
    static HOST_DEVICE void finish(const Reduce& p, u32 i, Total total) { write_result<T>(p, i, total); }
};

#define OF_NUMBERS(T) REDUCTION(sum, T, SumRule) REDUCTION(product, T, ProductRule)
OF_NUMBERS(f16)
OF_NUMBERS(bf16)
OF_NUMBERS(f32)
OF_NUMBERS(f64)
OF_NUMBERS(i32)
OF_NUMBERS(i64)
OF_NUMBERS(u32)
OF_NUMBERS(u64)
