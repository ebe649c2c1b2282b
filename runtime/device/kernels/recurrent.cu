// Recurrent layers: the steps apart from their matrix products, and the states. All D directions take a step together.
#include "functions.cuh"

// In the order of `Activation` in runtime/descriptors/src/recurrent/activation.rs.
enum GateCode : u32 {
    AffineGate, EluGate, HardSigmoidGate, LeakyReluGate, ReluGate, ScaledTanhGate, SigmoidGate, SoftplusGate, SoftsignGate,
    TanhGate, ThresholdedReluGate,
};
struct GateFunction {
    u32 code;
    f32 a, b;
};

template <class W> HOST_DEVICE W gate(const GateFunction& f, W x) {
    W a = f.a, b = f.b;
    switch (f.code) {
        case AffineGate: return a * x + b;
        case EluGate: return elu(x, a);
        case HardSigmoidGate: return clip(a * x + b, W(0), W(1));
        case LeakyReluGate: return x < 0 ? a * x : x;
        case ReluGate: return x < 0 ? W(0) : x;
        case ScaledTanhGate: return a * tanh(b * x);
        case SigmoidGate: return sigmoid(x);
        case SoftplusGate: return softplus(x);
        case SoftsignGate: return x / (1 + fabs(x));
        case TanhGate: return tanh(x);
        default: return x <= a ? W(0) : x;
    }
}

// A step of sequences `[B]` with states `[D, B, H]`. T is the type of inputs and outputs, and W that of computations.
struct RecurrentStep {
    // W: the products of all steps' inputs, `[D, steps · B, gates · H]`, and of the state, `[D, B, ready · H]`, where
    // `ready` gates do not depend on another gate.
    u64 projected, products;
    // W, `[D, B, H]`: GRU's r · h, and its product for gate n.
    u64 kept, waited;
    // T: `[D, 2 · gates · H]` for the input's product, then for the state's; T: `[D, 3 · H]` for gates i, o, f; i32:
    // `[B]`. 0 if absent.
    u64 bias, peepholes, lengths;
    u64 h, c;
    // T: `[steps, D, B, H]` or `[B, steps, D, H]`.
    u64 y;
    u32 count, directions, batch, steps, hidden, gates, ready, turn;
    u32 batch_first, reversed[2];
    // LSTM: whether `f = 1 - i`. GRU: whether r scales the state's product.
    u32 variant;
    u32 clips;
    f32 limit;
    GateFunction functions[2][3];
};

// The number of steps of a sequence.
HOST_DEVICE u32 length_of(u64 lengths, u32 b, u32 steps) {
    if (!lengths) return steps;
    i32 length = at<const i32>(lengths)[b];
    return length < 0 ? 0 : (u32)length < steps ? (u32)length : steps;
}

// The work of a thread: element `j` of the state of one sequence in one direction.
template <class T> struct Unit {
    typedef wide<T> W;
    const RecurrentStep& p;
    u32 i, d, b, j, row;
    bool ended;

    HOST_DEVICE Unit(const RecurrentStep& p, u32 i) : p(p), i(i), d(i / p.hidden / p.batch), b(i / p.hidden % p.batch), j(i % p.hidden) {
        u32 length = length_of(p.lengths, b, p.steps);
        ended = p.turn >= length;
        // A sequence that has ended writes zeros to a row that no other step writes.
        u32 step = !ended && p.reversed[d] ? length - 1 - p.turn : p.turn;
        row = p.batch_first ? b * p.steps + step : step * p.batch + b;
    }
    HOST_DEVICE T* y() const {
        u64 place = p.batch_first ? (u64)row * p.directions + d : ((u64)(row / p.batch) * p.directions + d) * p.batch + b;
        return at<T>(p.y) + place * p.hidden + j;
    }
    HOST_DEVICE W* h() const { return at<W>(p.h) + i; }
    HOST_DEVICE W* c() const { return at<W>(p.c) + i; }
    // The state's product for a gate.
    HOST_DEVICE W* product(u32 gate) const {
        return at<W>(p.products) + ((u64)d * p.batch + b) * p.ready * p.hidden + (u64)gate * p.hidden + j;
    }
    // The bias of a gate's product with the input (0) or with the state (1).
    HOST_DEVICE W bias(u32 gate, u32 which) const {
        if (!p.bias) return 0;
        return widen(at<const T>(p.bias)[(((u64)d * 2 + which) * p.gates + gate) * p.hidden + j]);
    }
    HOST_DEVICE W peephole(u32 gate) const {
        return p.peepholes ? (W)widen(at<const T>(p.peepholes)[((u64)d * 3 + gate) * p.hidden + j]) : W(0);
    }
    // The input's contribution to a gate, without the bias.
    HOST_DEVICE W input(u32 gate) const {
        u64 rows = (u64)p.steps * p.batch;
        return at<const W>(p.projected)[((d * rows + row) * p.gates + gate) * p.hidden + j];
    }
    HOST_DEVICE W sum(u32 gate) const { return input(gate) + (bias(gate, 0) + bias(gate, 1)); }
    // Clips a sum, and applies function number `which`.
    HOST_DEVICE W finished(u32 which, W x) const {
        if (p.clips) x = clip(x, W(-p.limit), W(p.limit));
        return ::gate(p.functions[d][which], x);
    }
};

template <class T> HOST_DEVICE void rnn_step(const RecurrentStep& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        Unit<T> unit(p, i);
        if (unit.ended) {
            narrow(wide<T>(0), unit.y());
            continue;
        }
        wide<T> h = unit.finished(0, unit.sum(0) + *unit.product(0));
        *unit.h() = h;
        narrow(h, unit.y());
    }
}

// Gates i, o, f, c.
template <class T> HOST_DEVICE void lstm_step(const RecurrentStep& p) {
    typedef wide<T> W;
    for (u32 index = first(); index < p.count; index += stride()) {
        Unit<T> unit(p, index);
        if (unit.ended) {
            narrow(W(0), unit.y());
            continue;
        }
        W c = *unit.c();
        W i = unit.sum(0) + *unit.product(0), o = unit.sum(1) + *unit.product(1);
        W f = unit.sum(2) + *unit.product(2), g = unit.sum(3) + *unit.product(3);
        if (p.peepholes) {
            i += unit.peephole(0) * c;
            f += unit.peephole(2) * c;
        }
        i = unit.finished(0, i);
        f = unit.finished(0, f);
        c = (p.variant ? 1 - i : f) * c + i * unit.finished(1, g);
        if (p.peepholes) o += unit.peephole(1) * c;
        W h = unit.finished(0, o) * ::gate(p.functions[unit.d][2], c);
        *unit.c() = c;
        *unit.h() = h;
        narrow(h, unit.y());
    }
}

// Gates z, r, n. Computes `r` here if it scales the state's product; otherwise `gru_reset` has computed it.
template <class T> HOST_DEVICE void gru_step(const RecurrentStep& p) {
    typedef wide<T> W;
    for (u32 i = first(); i < p.count; i += stride()) {
        Unit<T> unit(p, i);
        if (unit.ended) {
            narrow(W(0), unit.y());
            continue;
        }
        W z, n;
        if (p.variant) {
            z = unit.finished(0, unit.sum(0) + *unit.product(0));
            W r = unit.finished(0, unit.sum(1) + *unit.product(1));
            n = unit.input(2) + unit.bias(2, 0) + r * (*unit.product(2) + unit.bias(2, 1));
        } else {
            z = *unit.product(0);
            n = unit.sum(2) + at<const W>(p.waited)[i];
        }
        n = unit.finished(1, n);
        W h = n + z * (*unit.h() - n);
        *unit.h() = h;
        narrow(h, unit.y());
    }
}

// Replaces the product of gate z by the gate, and computes `r · h`, which is multiplied before `gru_step`.
template <class T> HOST_DEVICE void gru_reset(const RecurrentStep& p) {
    typedef wide<T> W;
    for (u32 i = first(); i < p.count; i += stride()) {
        Unit<T> unit(p, i);
        W kept = 0;
        if (!unit.ended) {
            *unit.product(0) = unit.finished(0, unit.sum(0) + *unit.product(0));
            kept = unit.finished(0, unit.sum(1) + *unit.product(1)) * *unit.h();
        }
        at<W>(p.kept)[i] = kept;
    }
}

// States `[D, B, H]` of W, and those of T outside, `[D, B, H]` or `[B, D, H]`.
struct RecurrentState {
    u64 from, to, lengths;
    Fault fault;
    u32 count, directions, batch, hidden, steps, batch_first;
};

// The index of a state's element outside.
HOST_DEVICE u64 place_outside(const RecurrentState& p, u32 i) {
    u32 j = i % p.hidden, b = i / p.hidden % p.batch, d = i / p.hidden / p.batch;
    return p.batch_first ? ((u64)b * p.directions + d) * p.hidden + j : i;
}

// The initial state, 0 if absent. It is 0 for an empty sequence.
template <class T> HOST_DEVICE void first_state(const RecurrentState& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        u32 b = i / p.hidden % p.batch;
        if (p.lengths) {
            i32 length = at<const i32>(p.lengths)[b];
            if (length < 0 || (u32)length > p.steps) report(p.fault, b, length);
        }
        bool is_given = p.from && length_of(p.lengths, b, p.steps) > 0;
        at<wide<T>>(p.to)[i] = is_given ? (wide<T>)widen(at<const T>(p.from)[place_outside(p, i)]) : wide<T>(0);
    }
}

template <class T> HOST_DEVICE void last_state(const RecurrentState& p) {
    for (u32 i = first(); i < p.count; i += stride()) narrow(at<const wide<T>>(p.from)[i], at<T>(p.to) + place_outside(p, i));
}

// `to [count]` has type f32.
struct Widened {
    u64 from, to;
    u32 count, padding;
};
template <class T> HOST_DEVICE void widen_weights(const Widened& p) {
    for (u32 i = first(); i < p.count; i += stride()) at<f32>(p.to)[i] = widen(at<const T>(p.from)[i]);
}

#define OF_KIND(kind)                                           \
    KERNEL(rnn_##kind, RecurrentStep, rnn_step<kind>)           \
    KERNEL(lstm_##kind, RecurrentStep, lstm_step<kind>)         \
    KERNEL(gru_##kind, RecurrentStep, gru_step<kind>)           \
    KERNEL(reset_##kind, RecurrentStep, gru_reset<kind>)        \
    KERNEL(first_state_##kind, RecurrentState, first_state<kind>) \
    KERNEL(last_state_##kind, RecurrentState, last_state<kind>)
OF_KIND(f16)
OF_KIND(bf16)
OF_KIND(f32)
OF_KIND(f64)
KERNEL(widen_f16, Widened, widen_weights<f16>)
KERNEL(widen_bf16, Widened, widen_weights<bf16>)
