// Floating-point functions of one and of two elements. Their numbers are in the order of `Unary` and `Binary` in
// runtime/descriptors/src/program/function.rs.
#pragma once
#include "device.cuh"

enum Unary : u32 {
    Abs, Neg, Sign, Ceil, Floor, Round, Sqrt, Reciprocal, Square, Exp, Log, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh,
    Tanh, Asinh, Acosh, Atanh, Erf, Sigmoid, Relu, Softplus, Softsign, HardSwish, Mish, Gelu, GeluTanh, Swish, LeakyRelu,
    Elu, Selu, Celu, HardSigmoid, ThresholdedRelu, Shrink, Clip, IsNaN, IsInf, Not, BitwiseNot,
};

enum Binary : u32 {
    AddOf, SubOf, MulOf, DivOf, PowOf, ModOf, Fmod, Min, Max, PRelu, Equal, LessThan, LessOrEqual, GreaterThan,
    GreaterOrEqual, And, Or, Xor, BitwiseAnd, BitwiseOr, BitwiseXor, ShiftLeft, ShiftRight,
};

// A function of one element with its parameters; booleans are 0 and 1.
struct Function {
    u32 code;
    f32 a, b;
};

template <class T> HOST_DEVICE T sigmoid(T x) {
    T e = exp(-fabs(x));
    return (x < 0 ? e : T(1)) / (1 + e);
}
template <class T> HOST_DEVICE T softplus(T x) { return x != x ? x : (x > 0 ? x : T(0)) + log1p(exp(-fabs(x))); }
template <class T> HOST_DEVICE T elu(T x, T alpha) { return x < 0 ? alpha * expm1(x) : x; }
template <class T> HOST_DEVICE T clip(T x, T low, T high) {
    T raised = low > x ? low : x;
    return high < raised ? high : raised;
}

template <class T> HOST_DEVICE T activation(const Function& f, T x) {
    T a = f.a, b = f.b;
    switch (f.code) {
        case Sigmoid: return sigmoid(x);
        case Relu: return x < 0 ? T(0) : x;
        case Softplus: return softplus(x);
        case Softsign: return x / (1 + fabs(x));
        case HardSwish: return x * clip(x / 6 + T(0.5), T(0), T(1));
        case Mish: return x * tanh(softplus(x));
        case Gelu: return T(0.5) * x * (1 + erf(x * T(0.70710678118654752440)));
        case GeluTanh: return T(0.5) * x * (1 + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
        case Swish: return x * sigmoid(a * x);
        case LeakyRelu: return x < 0 ? a * x : x;
        case Elu: return elu(x, a);
        case Selu: return b * elu(x, a);
        case Celu: return x < 0 ? a * expm1(x / a) : x;
        case HardSigmoid: return clip(a * x + b, T(0), T(1));
        case ThresholdedRelu: return x > a ? x : T(0);
        case Shrink: return x < -b ? x + a : x > b ? x - a : x != x ? x : T(0);
        case Clip: return clip(x, a, b);
        default: return x;
    }
}

template <class T> HOST_DEVICE T unary(const Function& f, T x) {
    switch (f.code) {
        case Abs: return fabs(x);
        case Neg: return -x;
        case Sign: return x > 0 ? T(1) : x < 0 ? T(-1) : x;
        case Ceil: return ceil(x);
        case Floor: return floor(x);
        case Round: return rint(x);
        case Sqrt: return sqrt(x);
        case Reciprocal: return 1 / x;
        case Square: return x * x;
        case Exp: return exp(x);
        case Log: return log(x);
        case Sin: return sin(x);
        case Cos: return cos(x);
        case Tan: return tan(x);
        case Asin: return asin(x);
        case Acos: return acos(x);
        case Atan: return atan(x);
        case Sinh: return sinh(x);
        case Cosh: return cosh(x);
        case Tanh: return tanh(x);
        case Asinh: return asinh(x);
        case Acosh: return acosh(x);
        case Atanh: return atanh(x);
        case Erf: return erf(x);
        case IsNaN: return x != x;
        // The parameters select −∞ and +∞.
        case IsInf: return fabs(x) == T(INFINITY) && (x < 0 ? f.a != 0 : f.b != 0);
        case Not: return x == 0;
        case BitwiseNot: return -1 - x;
        default: return activation(f, x);
    }
}

// The remainder with the sign of `y`.
template <class T> HOST_DEVICE T floor_mod(T x, T y) {
    T rest = fmod(x, y);
    if (rest == 0) return copysign(rest, y);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

template <class T> HOST_DEVICE T binary(u32 code, T x, T y) {
    switch (code) {
        case AddOf: return x + y;
        case SubOf: return x - y;
        case MulOf: return x * y;
        case DivOf: return x / y;
        case PowOf: return pow(x, y);
        case ModOf: return floor_mod(x, y);
        case Fmod: return fmod(x, y);
        case Min: return x != x || x < y ? x : y;
        case Max: return x != x || x > y ? x : y;
        case PRelu: return x < 0 ? y * x : x;
        case Equal: return x == y;
        case LessThan: return x < y;
        case LessOrEqual: return x <= y;
        case GreaterThan: return x > y;
        case GreaterOrEqual: return x >= y;
        case And: return x != 0 && y != 0;
        case Or: return x != 0 || y != 0;
        case Xor: return (x != 0) != (y != 0);
        default: return x;
    }
}
