// cuRAND. Candle creates a generator and never uses it.
#include "state.h"

using namespace standin;

static const Codes CODES = {101, 203, 201};
static const int ALLOCATION_FAILED = 102, TYPE_ERROR = 103, NOT_A_GENERATOR = 101;
static const uint64_t GENERATOR_BYTES = 1 << 20;
#define ENTER_RAND(symbol) ENTER_AS(symbol, CONTEXT, CODES, false)

extern "C" int curandCreateGenerator(void** handle, int kind) {
    ENTER_RAND("curandCreateGenerator");
    if (kind != 100) return TYPE_ERROR;
    int device = current_device();
    if (!take_outside(device, GENERATOR_BYTES)) return ALLOCATION_FAILED;
    *handle = state().libraries.add(std::make_shared<Library>(Library{"cuRAND", device, nullptr, GENERATOR_BYTES}));
    return SUCCESS;
}

extern "C" int curandDestroyGenerator(void* handle) {
    ENTER_RAND("curandDestroyGenerator");
    auto found = state().libraries.find(handle);
    if (!found) return NOT_A_GENERATOR;
    give_outside(found->device, found->bytes);
    state().libraries.remove(handle);
    return SUCCESS;
}

extern "C" int curandSetStream(void* handle, void* stream) {
    ENTER_RAND("curandSetStream");
    if (!state().libraries.find(handle)) return NOT_A_GENERATOR;
    return find_stream(stream) ? SUCCESS : 999;
}

extern "C" int curandSetPseudoRandomGeneratorSeed(void* handle, unsigned long long) {
    ENTER_RAND("curandSetPseudoRandomGeneratorSeed");
    return state().libraries.find(handle) ? SUCCESS : NOT_A_GENERATOR;
}
