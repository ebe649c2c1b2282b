// Largest and smallest elements.
#include "reduce.cuh"

// The type in which elements are compared, with its smallest and its largest value.
template <class T> struct Comparable;
#define COMPARABLE(T, As, low, high)                      \
    template <> struct Comparable<T> {                    \
        typedef As Type;                                  \
        static HOST_DEVICE As least() { return low; }     \
        static HOST_DEVICE As greatest() { return high; } \
    };
COMPARABLE(f16, f32, -INFINITY, INFINITY)
COMPARABLE(bf16, f32, -INFINITY, INFINITY)
COMPARABLE(f32, f32, -INFINITY, INFINITY)
COMPARABLE(f64, f64, -INFINITY, INFINITY)
COMPARABLE(i8, i32, -128, 127)
COMPARABLE(u8, i32, 0, 255)
COMPARABLE(i32, i32, (i32)0x80000000, 0x7fffffff)
COMPARABLE(i64, i64, (i64)0x8000000000000000, 0x7fffffffffffffff)
COMPARABLE(u32, u32, 0, 0xffffffff)
COMPARABLE(u64, u64, 0, 0xffffffffffffffff)

template <class T> struct ExtremumRule {
    typedef T In;
    typedef typename Comparable<T>::Type Lane;
    typedef Lane Total;
    static HOST_DEVICE Lane start(u32 function) { return function == Max ? Comparable<T>::least() : Comparable<T>::greatest(); }
    static HOST_DEVICE Lane step(u32 function, Lane lane, T element, u32) { return add(function, lane, widen(element)); }
    static HOST_DEVICE Total total(Lane lane) { return lane; }
    static HOST_DEVICE Total add(u32 function, Total a, Total b) { return function == Max ? Greater()(a, b) : Less()(a, b); }
    static HOST_DEVICE void finish(const Reduce& p, u32 i, Total total) {
        narrow((wide<T>)(p.truth ? Total(total != 0) : total), at<T>(p.y) + i);
    }
};

REDUCTION(extremum, f16, ExtremumRule)
REDUCTION(extremum, bf16, ExtremumRule)
REDUCTION(extremum, f32, ExtremumRule)
REDUCTION(extremum, f64, ExtremumRule)
REDUCTION(extremum, i32, ExtremumRule)
REDUCTION(extremum, i64, ExtremumRule)
REDUCTION(extremum, u32, ExtremumRule)
REDUCTION(extremum, u64, ExtremumRule)
REDUCTION(extremum, i8, ExtremumRule)
REDUCTION(extremum, u8, ExtremumRule)
