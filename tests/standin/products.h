// A product of matrices in columns, as cuBLAS takes it: C = alpha · A · B + beta · C, `batch` times.
#pragma once

#include <algorithm>

#include "queue.h"

namespace standin {

// The kinds of elements, as `cudaDataType` counts.
enum : int { F32 = 0, F64 = 1, F16 = 2, BF16 = 14 };

struct Operand {
    Address start;
    // Elements from one column to the next, and from one product's matrix to the next.
    int row;
    long long next;
    bool transposed;
};

struct Product {
    int m, n, k, batch;
    int kind, result;
    Operand a, b, c;
    double alpha, beta;
    int device;
};

inline size_t bytes_of(int kind) { return kind == F64 ? 8 : kind == F32 ? 4 : 2; }

// What is wrong with the memory of a product: a matrix outside of one block, or one that the result lies in. At the call, or
// when it runs, which is when blocks live in the order of the stream.
std::string wrong_memory(const Product& p, bool running);
// Computes it. The memory has been checked.
void multiply(const Product& p);

}  // namespace standin
