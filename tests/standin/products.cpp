// Matrix products by plain loops. Sums have f32, or f64 for f64. A sum consists of partial sums.
#include "products.h"

#include <cstring>


namespace standin {

namespace {

float widen_f16(uint16_t bits) {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023, word;
    float value;
    if (exponent == 0) {
        value = float(mantissa) * 0x1p-24f;
        return sign ? -value : value;
    }
    word = exponent == 31 ? sign | 0x7f800000 | mantissa << 13 : sign | (exponent + 112) << 23 | mantissa << 13;
    memcpy(&value, &word, 4);
    return value;
}

float widen_bf16(uint16_t bits) {
    uint32_t word = uint32_t(bits) << 16;
    float value;
    memcpy(&value, &word, 4);
    return value;
}

uint16_t narrow_bf16(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    if (value != value) return uint16_t(word >> 16 | 64);
    return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

// Rounds to the nearest number, ties to even. An addition shifts the lost bits out of the mantissa.
uint16_t narrow_f16(float value) {
    uint32_t word;
    memcpy(&word, &value, 4);
    uint16_t sign = word >> 16 & 0x8000;
    word &= 0x7fffffff;
    if (word > 0x7f800000) return sign | 0x7e00;
    if (word >= 0x477ff000) return sign | 0x7c00;
    if (word >= 0x38800000) return uint16_t(sign | ((word + 0xfff + (word >> 13 & 1)) - 0x38000000) >> 13);
    float size;
    memcpy(&size, &word, 4);
    size += 0.5f;
    memcpy(&word, &size, 4);
    return uint16_t(sign | (word - 0x3f000000));
}

template <class W> W read(Address start, int kind, size_t at) {
    const char* host = host_of(start) + at * bytes_of(kind);
    uint16_t half;
    float single;
    double wide;
    switch (kind) {
        case F64: return memcpy(&wide, host, 8), W(wide);
        case F32: return memcpy(&single, host, 4), W(single);
        case F16: return memcpy(&half, host, 2), W(widen_f16(half));
        default: return memcpy(&half, host, 2), W(widen_bf16(half));
    }
}

template <class W> void write(Address start, int kind, size_t at, W value) {
    char* host = host_of(start) + at * bytes_of(kind);
    float single = float(value);
    double wide = double(value);
    uint16_t half = kind == F16 ? narrow_f16(single) : narrow_bf16(single);
    if (kind == F64) memcpy(host, &wide, 8);
    else if (kind == F32) memcpy(host, &single, 4);
    else memcpy(host, &half, 2);
}

// The number of terms in a part of a sum.
const int DEPTH = 16;
// The number of results that are computed at once.
const int WIDTH = 64;

// `sums[i] = Σ x[d · WIDTH + i] · y[d]`.
#if defined(__x86_64__)
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
void sum_f32(const float* x, const float* y, int depth, float* sums) {
    for (int i = 0; i < WIDTH; i++) sums[i] = 0;
    for (int from = 0; from < depth; from += DEPTH) {
        float part[WIDTH] = {};
        for (int d = from; d < depth && d < from + DEPTH; d++)
            for (int i = 0; i < WIDTH; i++) part[i] += x[d * WIDTH + i] * y[d];
        for (int i = 0; i < WIDTH; i++) sums[i] += part[i];
    }
}

void sum_f64(const double* x, const double* y, int depth, double* sums) {
    for (int i = 0; i < WIDTH; i++) sums[i] = 0;
    for (int d = 0; d < depth; d++)
        for (int i = 0; i < WIDTH; i++) sums[i] += x[d * WIDTH + i] * y[d];
}

void sum_up(const float* x, const float* y, int depth, float* sums) { sum_f32(x, y, depth, sums); }
void sum_up(const double* x, const double* y, int depth, double* sums) { sum_f64(x, y, depth, sums); }

// Computes one product. `flipped` exchanges A and B, so that WIDTH results lie along the longer side of C.
template <class W> void multiply_one(const Product& p, int index) {
    bool flipped = p.m < p.n;
    const Operand &x = flipped ? p.b : p.a, &y = flipped ? p.a : p.b;
    int rows = flipped ? p.n : p.m, columns = flipped ? p.m : p.n;
    // Element (i, d) of A is at i + d · row, and element (d, j) of B at d + j · row. For a transposed operand, the indices
    // are exchanged.
    bool x_inner = flipped ? !p.b.transposed : p.a.transposed, y_inner = flipped ? p.a.transposed : !p.b.transposed;
    auto element = [&](const Operand& o, bool inner, int side, int d) {
        size_t at = size_t(index) * size_t(o.next) + (inner ? size_t(side) * o.row + d : size_t(d) * o.row + side);
        return read<W>(o.start, p.kind, at);
    };
    std::vector<W> all(size_t(columns) * p.k), panel(size_t(WIDTH) * p.k);
    for (int j = 0; j < columns; j++)
        for (int d = 0; d < p.k; d++) all[size_t(j) * p.k + d] = element(y, y_inner, j, d);
    for (int from = 0; from < rows; from += WIDTH) {
        int width = std::min(WIDTH, rows - from);
        for (int i = 0; i < width; i++)
            for (int d = 0; d < p.k; d++) panel[size_t(d) * WIDTH + i] = element(x, x_inner, from + i, d);
        for (int j = 0; j < columns; j++) {
            W sums[WIDTH];
            sum_up(panel.data(), &all[size_t(j) * p.k], p.k, sums);
            for (int i = 0; i < width; i++) {
                size_t inside = flipped ? size_t(from + i) * p.c.row + j : size_t(j) * p.c.row + from + i;
                size_t at = size_t(index) * size_t(p.c.next) + inside;
                W value = W(p.alpha) * sums[i];
                if (p.beta != 0) value += W(p.beta) * read<W>(p.c.start, p.result, at);
                write(p.c.start, p.result, at, value);
            }
        }
    }
}

// The bytes from the first element of an operand to the end of the last one.
size_t extent(const Operand& o, int rows, int columns, int batch, int kind) {
    size_t last = size_t(batch - 1) * size_t(o.next) + size_t(columns - 1) * o.row + size_t(rows);
    return last * bytes_of(kind);
}

// Whether two matrices of C share an element. A column of C begins every `row` elements.
bool overlap_themselves(const Product& p) {
    if (p.batch == 1) return false;
    if (p.c.next == 0) return true;
    size_t whole = size_t(p.n - 1) * p.c.row + p.m;
    if (size_t(p.c.next) >= whole) return false;
    std::vector<Address> starts;
    for (int i = 0; i < p.batch; i++)
        for (int j = 0; j < p.n; j++) starts.push_back(Address(i) * p.c.next + Address(j) * p.c.row);
    std::sort(starts.begin(), starts.end());
    for (size_t i = 1; i < starts.size(); i++)
        if (starts[i] - starts[i - 1] < Address(p.m)) return true;
    return false;
}

// Whether C shares an element with an operand. Compares elements only if the extents overlap.
bool shares(const Product& p, const Operand& o, int rows, int columns) {
    Address c_end = p.c.start + extent(p.c, p.m, p.n, p.batch, p.result);
    Address o_end = o.start + extent(o, rows, columns, p.batch, p.kind);
    if (p.c.start >= o_end || o.start >= c_end) return false;
    struct Range {
        Address start, end;
        bool of_c;
    };
    std::vector<Range> ranges;
    auto add = [&](const Operand& x, int height, int width, int kind, bool of_c) {
        for (int i = 0; i < p.batch; i++)
            for (int j = 0; j < width; j++) {
                Address start = x.start + (Address(i) * x.next + Address(j) * x.row) * bytes_of(kind);
                ranges.push_back({start, start + height * bytes_of(kind), of_c});
            }
    };
    add(p.c, p.m, p.n, p.result, true);
    add(o, rows, columns, p.kind, false);
    std::sort(ranges.begin(), ranges.end(), [](const Range& x, const Range& y) { return x.start < y.start; });
    Address ends[2] = {0, 0};
    for (const Range& each : ranges) {
        if (each.start < ends[!each.of_c]) return true;
        ends[each.of_c] = std::max(ends[each.of_c], each.end);
    }
    return false;
}

std::string wrong_place(const char* name, const Operand& o, int rows, int columns, const Product& p, int kind, bool running) {
    size_t bytes = extent(o, rows, columns, p.batch, kind);
    std::string why;
    if (o.start % bytes_of(kind)) return formatted("%s at an address that is no multiple of its element", name);
    if (running) {
        live_block(o.start, bytes, p.device, why);
    } else {
        Block* block = block_at(o.start);
        bool is_inside = block && o.start >= block->start && o.start - block->start + bytes <= block->size;
        if (!is_inside) why = formatted("%zu bytes at %#llx that are not in one block", bytes, o.start);
        else if (block->freed_at_call) why = "a block that is freed";
    }
    return why.empty() ? why : std::string("a matrix ") + name + ": " + why;
}

}  // namespace

std::string wrong_memory(const Product& p, bool running) {
    int a_rows = p.a.transposed ? p.k : p.m, a_columns = p.a.transposed ? p.m : p.k;
    int b_rows = p.b.transposed ? p.n : p.k, b_columns = p.b.transposed ? p.k : p.n;
    std::string why;
    if (p.k > 0) why = wrong_place("A", p.a, a_rows, a_columns, p, p.kind, running);
    if (why.empty() && p.k > 0) why = wrong_place("B", p.b, b_rows, b_columns, p, p.kind, running);
    if (why.empty()) why = wrong_place("C", p.c, p.m, p.n, p, p.result, running);
    if (!why.empty() || running) return why;
    if (overlap_themselves(p)) return "results that overlap each other";
    if (p.k > 0 && (shares(p, p.a, a_rows, a_columns) || shares(p, p.b, b_rows, b_columns)))
        return "a result that overlaps an operand";
    return "";
}

void multiply(const Product& p) {
    for (int i = 0; i < p.batch; i++)
        if (p.kind == F64) multiply_one<double>(p, i);
        else multiply_one<float>(p, i);
}

}  // namespace standin
