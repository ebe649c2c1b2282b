// Operands that broadcast to one result.
#pragma once
#include "device.cuh"

// Like `offset`, for merged dimensions; there is only one if each operand has the result's shape or one element.
HOST_DEVICE i64 place(const Dims& dims, const Strides& strides, u32 i) {
    return dims.rank == 1 ? (i64)i * strides.step[0] : offset(dims, strides, i);
}

// `z[i] = function(x, y)` for `count` elements. Z may be X or Y if that operand has the result's shape. Must match
// `BinaryParams` in Rust.
struct BinaryOf {
    u64 x, y, z;
    Fault fault;
    u32 count, function;
    Dims dims;
    Strides of_x, of_y;
    // The type of Y's elements, if it may differ from X's: a `Number`.
    u32 exponent;
};
