// How the copy of the module for CUDA opens libraries: those of the stand-in have names of their own in a process, since
// PyTorch may have brought NVIDIA's cuBLAS.
#include <dlfcn.h>

#include <cstring>

// Takes the place of `dlopen`, whose name is as long.
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
