// Opens libraries for the copy of the module for CUDA. The stand-in's libraries have their own names, because PyTorch may
// have loaded NVIDIA's cuBLAS.
#include <dlfcn.h>

#include <cstring>

// Replaces `dlopen`. Its name has the same length.
extern "C" void* siopen(const char* file, int flags) {
    const char* names[][2] = {
        {"libcuda.so.1", "libcuda-s.so"},
        {"libcublas.so.13", "libcublas-si.so"},
        {"libcurand.so.10", "libcurand-si.so"},
    };
    for (const auto& [name, own] : names)
        if (file && !strcmp(file, name)) return dlopen(own, flags);
    return dlopen(file, flags);
}
