// Functions of two elements, except powers of integers and of mixed types.
#include "broadcast.cuh"
#include "functions.cuh"

template <class T> HOST_DEVICE void of_floats(const BinaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        wide<T> x = widen(at<const T>(p.x)[place(p.dims, p.of_x, i)]);
        wide<T> y = widen(at<const T>(p.y)[place(p.dims, p.of_y, i)]);
        narrow(binary(p.function, x, y), at<T>(p.z) + i);
    }
}

// Integers wrap. Division truncates toward 0; by 0 it is a fault, and gives 0. Z has the quotient as element `i`.
template <class T> HOST_DEVICE T divide(const BinaryOf& p, u32 i, T x, T y) {
    if (y == 0) {
        report(p.fault, (u32)place(p.dims, p.of_y, i), 0);
        return 0;
    }
    // The smallest integer divided by -1 wraps; the processor's division instruction cannot compute it.
    bool negates = T(-1) < T(0) && y == T(-1);
    if (p.function == DivOf) return negates ? (T)(0 - (u64)x) : (T)(x / y);
    T rest = negates ? T(0) : (T)(x % y);
    return p.function == ModOf && rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;
}

// A shift by the type's width or more shifts out every bit.
template <class T> HOST_DEVICE T shift(const BinaryOf& p, T x, T y) {
    bool is_inside = (u64)y < 8 * sizeof(T);
    if (p.function == ShiftLeft) return is_inside ? (T)((u64)x << y) : T(0);
    return is_inside ? (T)(x >> y) : x < 0 ? T(-1) : T(0);
}

template <class T> HOST_DEVICE T of_integers(const BinaryOf& p, u32 i, T x, T y) {
    switch (p.function) {
        case AddOf: return (T)((u64)x + (u64)y);
        case SubOf: return (T)((u64)x - (u64)y);
        case MulOf: return (T)((u64)x * (u64)y);
        case DivOf:
        case ModOf:
        case Fmod: return divide(p, i, x, y);
        case Min: return y < x ? y : x;
        case Max: return y > x ? y : x;
        case PRelu: return x < 0 ? (T)((u64)x * (u64)y) : x;
        case And:
        case BitwiseAnd: return x & y;
        case Or:
        case BitwiseOr: return x | y;
        case Xor:
        case BitwiseXor: return x ^ y;
        case ShiftLeft:
        case ShiftRight: return shift(p, x, y);
        default: return x;
    }
}

template <class T> HOST_DEVICE void of_integers(const BinaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        T x = at<const T>(p.x)[place(p.dims, p.of_x, i)], y = at<const T>(p.y)[place(p.dims, p.of_y, i)];
        at<T>(p.z)[i] = of_integers(p, i, x, y);
    }
}

template <class W> HOST_DEVICE u8 compare(const BinaryOf& p, W x, W y) {
    switch (p.function) {
        case Equal: return x == y;
        case LessThan: return x < y;
        case LessOrEqual: return x <= y;
        case GreaterThan: return x > y;
        default: return x >= y;
    }
}

template <class T> HOST_DEVICE void comparison(const BinaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) {
        wide<T> x = widen(at<const T>(p.x)[place(p.dims, p.of_x, i)]);
        wide<T> y = widen(at<const T>(p.y)[place(p.dims, p.of_y, i)]);
        at<u8>(p.z)[i] = compare(p, x, y);
    }
}

KERNEL(binary_f16, BinaryOf, of_floats<f16>)
KERNEL(binary_bf16, BinaryOf, of_floats<bf16>)
KERNEL(binary_f32, BinaryOf, of_floats<f32>)
KERNEL(binary_f64, BinaryOf, of_floats<f64>)
KERNEL(binary_i8, BinaryOf, of_integers<i8>)
KERNEL(binary_i16, BinaryOf, of_integers<i16>)
KERNEL(binary_i32, BinaryOf, of_integers<i32>)
KERNEL(binary_i64, BinaryOf, of_integers<i64>)
KERNEL(binary_u8, BinaryOf, of_integers<u8>)
KERNEL(binary_u16, BinaryOf, of_integers<u16>)
KERNEL(binary_u32, BinaryOf, of_integers<u32>)
KERNEL(binary_u64, BinaryOf, of_integers<u64>)
KERNEL(comparison_f16, BinaryOf, comparison<f16>)
KERNEL(comparison_bf16, BinaryOf, comparison<bf16>)
KERNEL(comparison_f32, BinaryOf, comparison<f32>)
KERNEL(comparison_f64, BinaryOf, comparison<f64>)
KERNEL(comparison_i8, BinaryOf, comparison<i8>)
KERNEL(comparison_i16, BinaryOf, comparison<i16>)
KERNEL(comparison_i32, BinaryOf, comparison<i32>)
KERNEL(comparison_i64, BinaryOf, comparison<i64>)
KERNEL(comparison_u8, BinaryOf, comparison<u8>)
KERNEL(comparison_u16, BinaryOf, comparison<u16>)
KERNEL(comparison_u32, BinaryOf, comparison<u32>)
KERNEL(comparison_u64, BinaryOf, comparison<u64>)
