// ln Σ eˣ, without overflow.
#include "reduce.cuh"

// The type in which exponentials are computed.
template <class T> struct Real { typedef wide<T> Type; };
template <> struct Real<i32> { typedef f64 Type; };
template <> struct Real<i64> { typedef f64 Type; };
template <> struct Real<u32> { typedef f64 Type; };
template <> struct Real<u64> { typedef f64 Type; };

// Σ eˣ⁻ˡᵃʳᵍᵉˢᵗ; `largest` is NaN if an element is NaN.
template <class W> struct Exponentials {
    W largest, sum;
};

template <class T> struct LogSumExpRule {
    typedef T In;
    typedef typename Real<T>::Type W;
    typedef Exponentials<W> Lane;
    typedef Exponentials<f64> Total;
    static HOST_DEVICE Lane start(u32) { return Lane{-INFINITY, 0}; }
    static HOST_DEVICE Lane step(u32, Lane lane, T element, u32) {
        W x = (W)widen(element);
        if (x > lane.largest || x != x) return Lane{x, lane.sum * exp(lane.largest - x) + 1};
        // e to the power of −∞ − −∞ would be NaN.
        if (x > -INFINITY) lane.sum += exp(x - lane.largest);
        return lane;
    }
    static HOST_DEVICE Total total(Lane lane) { return Total{lane.largest, lane.sum}; }
    static HOST_DEVICE Total add(u32, Total a, Total b) {
        if (a.largest == -INFINITY) return b;
        if (b.largest == -INFINITY) return a;
        f64 largest = Greater()(a.largest, b.largest);
        return Total{largest, a.sum * exp(a.largest - largest) + b.sum * exp(b.largest - largest)};
    }
    static HOST_DEVICE void finish(const Reduce& p, u32 i, Total total) {
        bool is_finite = fabs(total.largest) < INFINITY;
        write_log(is_finite ? total.largest + log(total.sum) : total.largest, at<T>(p.y) + i);
    }
    static HOST_DEVICE void write_log(f64 x, f16* y) { narrow((f32)x, y); }
    static HOST_DEVICE void write_log(f64 x, bf16* y) { narrow((f32)x, y); }
    static HOST_DEVICE void write_log(f64 x, f32* y) { *y = (f32)x; }
    static HOST_DEVICE void write_log(f64 x, f64* y) { *y = x; }
    template <class I> static HOST_DEVICE void write_log(f64 x, I* y) { *y = truncated_real<I>(x, I(-1) < I(0)); }
};

REDUCTION(log_sum_exp, f16, LogSumExpRule)
REDUCTION(log_sum_exp, bf16, LogSumExpRule)
REDUCTION(log_sum_exp, f32, LogSumExpRule)
REDUCTION(log_sum_exp, f64, LogSumExpRule)
REDUCTION(log_sum_exp, i32, LogSumExpRule)
REDUCTION(log_sum_exp, i64, LogSumExpRule)
REDUCTION(log_sum_exp, u32, LogSumExpRule)
REDUCTION(log_sum_exp, u64, LogSumExpRule)
