// cuBLAS: handles, and products with every argument checked.
#include <cstring>

#include "products.h"

using namespace standin;

// The codes of `cublasStatus_t`.
static const int NOT_READY_YET = 1, NO_ROOM = 3, WRONG_VALUE = 7, FAILED = 13, UNSUPPORTED = 15;

static const Codes CODES = {NOT_READY_YET, NOT_READY_YET, FAILED};
static const uint64_t HANDLE_BYTES = 8 << 20;
#define ENTER_BLAS(symbol) ENTER_AS(symbol, CONTEXT, CODES, false)

// The library's state of a handle, if the handle's context is current.
static std::shared_ptr<Library> find(void* handle) {
    auto found = state().libraries.find(handle);
    if (!found || strcmp(found->name, "cuBLAS") != 0) return nullptr;
    if (found->device == current_device()) return found;
    report("a handle of cuBLAS of device %d is used while device %d is current", found->device, current_device());
    return nullptr;
}

extern "C" int cublasCreate_v2(void** handle) {
    ENTER_BLAS("cublasCreate_v2");
    int device = current_device();
    if (!take_outside(device, HANDLE_BYTES)) return NO_ROOM;
    *handle = state().libraries.add(std::make_shared<Library>(Library{"cuBLAS", device, nullptr, HANDLE_BYTES}));
    return SUCCESS;
}

extern "C" int cublasDestroy_v2(void* handle) {
    ENTER_BLAS("cublasDestroy_v2");
    auto found = find(handle);
    if (!found) return NOT_READY_YET;
    wait_for_device(lock, found->device);
    give_outside(found->device, found->bytes);
    state().libraries.remove(handle);
    return SUCCESS;
}

extern "C" int cublasSetStream_v2(void* handle, void* stream) {
    ENTER_BLAS("cublasSetStream_v2");
    auto found = find(handle);
    if (!found || !find_stream(stream)) return found ? WRONG_VALUE : NOT_READY_YET;
    found->stream = stream;
    return SUCCESS;
}

extern "C" int cublasSetMathMode(void* handle, int mode) {
    ENTER_BLAS("cublasSetMathMode");
    // The default, or 16: sums of half types in f32. TF32 would not be exact.
    if (mode != 0 && mode != 16) report("cublasSetMathMode has mode %d, in which f32 is not exact", mode);
    return find(handle) ? int(SUCCESS) : NOT_READY_YET;
}

extern "C" int cublasSetWorkspace_v2(void* handle, void* workspace, size_t size) {
    ENTER_BLAS("cublasSetWorkspace_v2");
    auto found = find(handle);
    if (!found) return NOT_READY_YET;
    Block* block = block_at(uint64_t(workspace));
    if (size > 0 && (!block || block->freed_at_call || uint64_t(workspace) - block->start + size > block->size))
        report("the workspace of cuBLAS is no memory of %zu bytes", size);
    return uint64_t(workspace) % 256 ? WRONG_VALUE : int(SUCCESS);
}

// Whether cuBLAS accepts this combination of element types and type of sums.
static bool known(const Product& p, int compute) {
    const int F32_SUMS = 68, F64_SUMS = 70;
    if (p.kind == F64) return p.result == F64 && compute == F64_SUMS;
    if (p.kind == F32) return p.result == F32 && compute == F32_SUMS;
    return (p.kind == F16 || p.kind == BF16) && (p.result == p.kind || p.result == F32) && compute == F32_SUMS;
}

// Whether cuBLAS accepts all sizes and strides.
static bool is_sound(const Product& p) {
    if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0 || p.batch > 65535) return false;
    if (p.a.row < std::max(1, p.a.transposed ? p.k : p.m) || p.b.row < std::max(1, p.b.transposed ? p.n : p.k)) return false;
    return p.c.row >= std::max(1, p.m) && p.a.next >= 0 && p.b.next >= 0 && p.c.next >= 0;
}

static double factor(const void* at, int kind) {
    if (kind == F64) return *static_cast<const double*>(at);
    return *static_cast<const float*>(at);
}

extern "C" int cublasGemmStridedBatchedEx(void* handle, int transa, int transb, int m, int n, int k, const void* alpha,
                                          const void* a, int a_kind, int lda, long long stride_a, const void* b, int b_kind,
                                          int ldb, long long stride_b, const void* beta, void* c, int c_kind, int ldc,
                                          long long stride_c, int batch, int compute, int algorithm) {
    ENTER_BLAS("cublasGemmStridedBatchedEx");
    auto library = find(handle);
    auto stream = library && library->stream ? find_stream(library->stream) : nullptr;
    if (!library || !stream) return NOT_READY_YET;
    if (state().config.mutate_arguments) std::swap(m, n);
    if (transa < 0 || transa > 1 || transb < 0 || transb > 1 || !alpha || !beta) return WRONG_VALUE;
    // The default algorithm, and the one for tensor cores that Candle asks for.
    if ((algorithm != -1 && algorithm != 99) || a_kind != b_kind) return UNSUPPORTED;
    auto product = std::make_shared<Product>();
    *product = {m, n, k, batch, a_kind, c_kind, {uint64_t(a), lda, stride_a, transa == 1}, {uint64_t(b), ldb, stride_b, transb == 1},
                {uint64_t(c), ldc, stride_c, false}, 0, 0, library->device};
    if (!known(*product, compute)) return UNSUPPORTED;
    if (!is_sound(*product)) return WRONG_VALUE;
    product->alpha = factor(alpha, a_kind);
    product->beta = factor(beta, a_kind);
    if (m == 0 || n == 0 || batch == 0) return SUCCESS;
    std::string why = wrong_memory(*product, false);
    if (!why.empty()) report("cublasGemmStridedBatchedEx has %s", why.c_str());
    Operation operation;
    operation.name = "cublasGemmStridedBatchedEx";
    operation.run = [product](Lock& lock) {
        std::string why = wrong_memory(*product, true);
        if (!why.empty()) {
            report("cublasGemmStridedBatchedEx, when it runs, has %s", why.c_str());
            return lose(lock, ILLEGAL_ADDRESS);
        }
        lock.unlock();
        multiply(*product);
        lock.lock();
    };
    enqueue(lock, stream, std::move(operation));
    return SUCCESS;
}
