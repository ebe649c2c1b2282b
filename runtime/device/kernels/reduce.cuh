// Reductions over any axes, defined by a rule.
//
// A team computes a result from `n` elements, or from a part of them; a second kernel then joins the totals of the
// parts.
#pragma once
#include "team.cuh"

enum Reduction : u32 { Sum, Mean, Max, Min, Prod, L1, L2, LogSum, LogSumExp, SumSquare, ArgMax, ArgMin, LastArgMax, LastArgMin };

struct Reduce {
    // `totals` [parts, results] if there are several parts.
    u64 x, y, totals;
    u32 function, results, n, parts;
    // The elements of each part except the last; whether results are booleans.
    u32 part, truth;
    Teams teams;
    Dims kept, reduced;
    Strides kept_steps, reduced_steps;
};

// Truncates to an integer and saturates; 0 for NaN.
template <class T> HOST_DEVICE T truncated_real(f64 x, bool is_signed) {
    const u32 bits = 8 * sizeof(T);
    f64 limit = exp2((f64)(is_signed ? bits - 1 : bits)), least = is_signed ? -limit : 0;
    if (x != x) return 0;
    T lowest = is_signed ? (T)((u64)1 << (bits - 1)) : T(0);
    return x <= least ? lowest : x >= limit ? (T)~lowest : (T)x;
}

// A rule defines the reduction. A thread's `Lane` takes PIECE elements with `step(function, lane, element, place)`, and
// is converted to a `Total`. `add` joins totals, and `finish` writes a result. Without elements, lanes are `start`.
template <class Rule> struct AddTotals {
    u32 function;
    HOST_DEVICE typename Rule::Total operator()(const typename Rule::Total& a, const typename Rule::Total& b) const {
        return Rule::add(function, a, b);
    }
};

// The total of the elements `from..to` of a result that belong to this member.
template <class Rule> HOST_DEVICE typename Rule::Total total_of(const Reduce& p, u32 result, u32 from, u32 to) {
    auto x = at<const typename Rule::In>(p.x) + offset(p.kept, p.kept_steps, result);
    auto total = Rule::total(Rule::start(p.function));
    for (u32 i = from + member_number(p.teams); i < to;) {
        auto lane = Rule::start(p.function);
        for (u32 k = 0; k < PIECE && i < to; k++, i += p.teams.size) {
            i64 place = p.reduced.rank == 1 ? (i64)i * p.reduced_steps.step[0] : offset(p.reduced, p.reduced_steps, i);
            lane = Rule::step(p.function, lane, x[place], i);
        }
        total = Rule::add(p.function, total, Rule::total(lane));
    }
    return total;
}

template <class Rule> HOST_DEVICE void reduce(const Reduce& p) {
    u32 teams = teams_of_block(p.teams), tiles = (p.results + teams - 1) / teams;
    for (u32 work = blockIdx.x; work < tiles * p.parts; work += gridDim.x) {
        u32 part = work / tiles, result = (work - part * tiles) * teams + team_number(p.teams);
        bool is_there = result < p.results;
        u32 from = part * p.part, to = from + p.part < p.n ? from + p.part : p.n;
        auto total = total_of<Rule>(p, is_there ? result : 0, from, is_there ? to : 0);
        total = joined(p.teams, total, AddTotals<Rule>{p.function});
        if (!is_there || member_number(p.teams) != 0) continue;
        if (p.parts == 1) Rule::finish(p, result, total);
        else at<typename Rule::Total>(p.totals)[part * p.results + result] = total;
    }
}

template <class Rule> HOST_DEVICE void join_parts(const Reduce& p) {
    for (u32 i = first(); i < p.results; i += stride()) {
        auto total = Rule::total(Rule::start(p.function));
        for (u32 part = 0; part < p.parts; part++)
            total = Rule::add(p.function, total, at<const typename Rule::Total>(p.totals)[part * p.results + i]);
        Rule::finish(p, i, total);
    }
}

#define REDUCTION(name, T, Rule)                                   \
    COOPERATIVE(reduce_##name##_##T, Reduce, reduce<Rule<T>>)      \
    KERNEL(reduce_##name##_parts_##T, Reduce, join_parts<Rule<T>>)
