// Functions of one element.
#include "functions.cuh"

struct UnaryOf {
    u64 x, y;
    u32 count;
    Function function;
};

template <class T> HOST_DEVICE void of_floats(const UnaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) narrow(unary(p.function, widen(at<const T>(p.x)[i])), at<T>(p.y) + i);
}

template <class T> HOST_DEVICE void truth_of_floats(const UnaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride()) at<u8>(p.y)[i] = unary(p.function, widen(at<const T>(p.x)[i])) != 0;
}

// Functions of integers, which wrap around. U is the unsigned type of the same width.
template <class T, class U> HOST_DEVICE T of_integer(u32 code, T x) {
    switch (code) {
        case Abs: return x < 0 ? (T)(U(0) - (U)x) : x;
        case Neg: return (T)(U(0) - (U)x);
        case Sign: return (x > 0) - (x < 0);
        case Square: return (T)((u64)x * (u64)x);
        case Relu: return x < 0 ? T(0) : x;
        case BitwiseNot: return ~x;
        case Not: return x == 0;
        default: return x;
    }
}

template <class T, class U> HOST_DEVICE void of_integers(const UnaryOf& p) {
    for (u32 i = first(); i < p.count; i += stride())
        at<T>(p.y)[i] = of_integer<T, U>(p.function.code, at<const T>(p.x)[i]);
}

KERNEL(unary_f16, UnaryOf, of_floats<f16>)
KERNEL(unary_bf16, UnaryOf, of_floats<bf16>)
KERNEL(unary_f32, UnaryOf, of_floats<f32>)
KERNEL(unary_f64, UnaryOf, of_floats<f64>)
KERNEL(unary_i8, UnaryOf, of_integers<i8, u8>)
KERNEL(unary_i16, UnaryOf, of_integers<i16, u16>)
KERNEL(unary_i32, UnaryOf, of_integers<i32, u32>)
KERNEL(unary_i64, UnaryOf, of_integers<i64, u64>)
KERNEL(unary_u8, UnaryOf, of_integers<u8, u8>)
KERNEL(unary_u16, UnaryOf, of_integers<u16, u16>)
KERNEL(unary_u32, UnaryOf, of_integers<u32, u32>)
KERNEL(unary_u64, UnaryOf, of_integers<u64, u64>)
KERNEL(truth_f16, UnaryOf, truth_of_floats<f16>)
KERNEL(truth_bf16, UnaryOf, truth_of_floats<bf16>)
KERNEL(truth_f32, UnaryOf, truth_of_floats<f32>)
KERNEL(truth_f64, UnaryOf, truth_of_floats<f64>)
