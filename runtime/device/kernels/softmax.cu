// Softmax and related functions along lines.
#include "team.cuh"

enum SoftmaxForm : u32 { Softmax, LogSoftmax, Hardmax };

struct SoftmaxOf {
    u64 x, y;
    Lines lines;
    u32 form;
};

// eˣ / Σ eˣ, or x − ln Σ eˣ; the maximum is subtracted first.
template <class T> HOST_DEVICE void exponential(const SoftmaxOf& p, u32 line, u32 n) {
    typedef wide<T> W;
    const Teams& teams = p.lines.teams;
    u32 number = member_number(teams), inner = p.lines.inner, start = start_of(p.lines, line);
    const T* x = at<const T>(p.x) + start;
    T* y = at<T>(p.y) + start;
    W largest = -INFINITY;
    for (u32 k = number; k < n; k += teams.size) largest = Greater()(largest, widen(x[k * inner]));
    largest = joined(teams, largest, Greater());
    f64 sum = sum_of(number, n, teams.size, [&](u32 k) { return exp(widen(x[k * inner]) - largest); });
    sum = joined(teams, sum, Add());
    W factor = 1 / (W)sum, log_of_sum = log((W)sum);
    for (u32 k = number; k < n; k += teams.size) {
        W value = widen(x[k * inner]) - largest;
        narrow(p.form == Softmax ? exp(value) * factor : value - log_of_sum, y + k * inner);
    }
}

// 1 for the first of the largest elements, 0 for the others.
template <class T> HOST_DEVICE void hard(const SoftmaxOf& p, u32 line, u32 n) {
    typedef wide<T> W;
    const Teams& teams = p.lines.teams;
    u32 number = member_number(teams), inner = p.lines.inner, start = start_of(p.lines, line);
    const T* x = at<const T>(p.x) + start;
    T* y = at<T>(p.y) + start;
    CandidateOrder order = {0, 0};
    Candidate<W> best = {0, NOWHERE};
    for (u32 k = number; k < n; k += teams.size) best = order.offered(best, widen(x[k * inner]), k);
    best = joined(teams, best, order);
    for (u32 k = number; k < n; k += teams.size) narrow(W(k == best.place), y + k * inner);
}

template <class T> HOST_DEVICE void softmax(const SoftmaxOf& p) {
    for_each_line(p.lines, [&](u32 line, u32 n) {
        if (p.form == Hardmax) hard<T>(p, line, n);
        else exponential<T>(p, line, n);
    });
}

COOPERATIVE(softmax_f16, SoftmaxOf, softmax<f16>)
COOPERATIVE(softmax_bf16, SoftmaxOf, softmax<bf16>)
COOPERATIVE(softmax_f32, SoftmaxOf, softmax<f32>)
COOPERATIVE(softmax_f64, SoftmaxOf, softmax<f64>)
