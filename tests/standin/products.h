// A product of column-major matrices, as in cuBLAS: C = alpha · A · B + beta · C, `batch` times.
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

// Returns an error if a matrix is not inside one block, or if the result overlaps an operand; otherwise an empty text. With
// `running`, the blocks must be alive in the order of the stream, otherwise at the call.
std::string wrong_memory(const Product& p, bool running);
// Computes the product. The caller has checked the memory.
void multiply(const Product& p);

}  // namespace standin
