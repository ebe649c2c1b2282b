// Modules of a GPU: PTX, or machine code for one generation of GPUs. The stand-in reads the kernels' names and the sizes of
// their parameters from it, and runs the same kernels compiled as C++.
#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator.h"
#include "queue.h"

namespace standin {

namespace {

// The device memory of a loaded module.
const uint64_t MODULE_BYTES = 1 << 20;

// The kernels of an image, with the sizes of their parameters.
typedef std::map<std::string, size_t> Image;

const Entry* entry_of(const std::string& name) {
    const Entry* found = nullptr;
    for (const Entry* each = Entry::all; each; each = each->next)
        if (name == strrchr(each->name, '/') + 1) {
            if (found) report("two modules have a kernel %s", name.c_str());
            found = each;
        }
    return found;
}

// The word after `key` in a text, up to a space or the end of the line.
std::string word_behind(const char* text, const char* key) {
    const char* at = strstr(text, key);
    return at ? std::string(at + strlen(key), strcspn(at + strlen(key), " ,\n")) : "";
}

int read_ptx(const char* text, Image& image) {
    if (!state().config.jit) return JIT_COMPILATION_DISABLED;
    const int device = 10 * state().config.major + state().config.minor;
    int target = atoi(word_behind(text, ".target sm_").c_str());
    if (target == 0) return INVALID_PTX;
    if (target > device) return NO_BINARY_FOR_GPU;
    // CUDA 13.0 has PTX 9.0, and 13.1 has 9.1.
    int version = int(10 * atof(word_behind(text, ".version ").c_str()) + 0.5), driver = state().config.driver;
    if (version > 10 * (driver / 1000 - 4) + driver % 1000 / 10) return UNSUPPORTED_PTX_VERSION;
    const char* ENTRY = ".entry ";
    for (const char* at = strstr(text, ENTRY); at; at = strstr(at, ENTRY)) {
        at += strlen(ENTRY);
        std::string name(at, strcspn(at, "(\n "));
        size_t length = strcspn(at, ")");
        std::string parameters(at, length);
        size_t size = parameters.rfind('[');
        if (size == std::string::npos) return INVALID_PTX;
        image[name] = strtoull(parameters.c_str() + size + 1, nullptr, 10);
        at += length;
    }
    return SUCCESS;
}

// The bytes of parameters that a kernel's section of facts states.
size_t parameters_of(const unsigned char* facts, size_t size) {
    const unsigned char SHORT = 3, LONG = 4, BYTES_OF_PARAMETERS = 0x19;
    for (size_t at = 0; at + 4 <= size;) {
        unsigned value = facts[at + 2] | facts[at + 3] << 8;
        if (facts[at] == SHORT && facts[at + 1] == BYTES_OF_PARAMETERS) return value;
        at += facts[at] == LONG ? 4 + value : 4;
    }
    return 0;
}

int read_elf(const char* bytes, Image& image) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes);
    const int CUDA = 190;
    if (header->e_machine != CUDA) return 200;
    // The lowest byte of the flags states the generation; in newer files, the second byte.
    int device = 10 * state().config.major + state().config.minor;
    int made_for = header->e_ident[EI_ABIVERSION] >= 8 ? header->e_flags >> 8 & 0xff : header->e_flags & 0xff;
    // Code runs on the same or a newer minor version of its major version.
    if (made_for / 10 != device / 10 || made_for > device) return NO_BINARY_FOR_GPU;
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
    const char* names = bytes + sections[header->e_shstrndx].sh_offset;
    const char* FACTS = ".nv.info.";
    for (int i = 0; i < header->e_shnum; i++) {
        const char* name = names + sections[i].sh_name;
        if (strncmp(name, FACTS, strlen(FACTS)) != 0) continue;
        const auto* facts = reinterpret_cast<const unsigned char*>(bytes + sections[i].sh_offset);
        image[name + strlen(FACTS)] = parameters_of(facts, sections[i].sh_size);
    }
    return SUCCESS;
}

int load(void** handle, const void* bytes) {
    if (!handle || !bytes) return INVALID_VALUE;
    Image image;
    const char* text = static_cast<const char*>(bytes);
    int code = memcmp(text, ELFMAG, SELFMAG) ? read_ptx(text, image) : read_elf(text, image);
    if (code) return code;
    auto module = std::make_shared<Module>();
    module->device = current_device();
    for (const auto& [name, size] : image) {
        const Entry* entry = entry_of(name);
        if (!entry || entry->size != size) {
            report("the kernel %s of a module has %zu bytes of parameters, and %lld in the sources: build the module anew",
                   name.c_str(), size, entry ? (long long)entry->size : -1);
            return INVALID_PTX;
        }
        module->kernels[name] = {entry->name, entry, size};
    }
    if (image.empty()) return INVALID_PTX;
    if (!take_outside(module->device, MODULE_BYTES)) return OUT_OF_MEMORY;
    *handle = state().modules.add(module);
    return SUCCESS;
}

}  // namespace

}  // namespace standin

using namespace standin;

extern "C" int cuModuleLoadData(void** handle, const void* image) {
    ENTER("cuModuleLoadData", CONTEXT);
    return load(handle, image);
}

extern "C" int cuModuleLoadDataEx(void** handle, const void* image, unsigned, int*, void**) {
    ENTER("cuModuleLoadDataEx", CONTEXT);
    return load(handle, image);
}

extern "C" int cuModuleGetFunction(void** handle, void* module_handle, const char* name) {
    ENTER("cuModuleGetFunction", CONTEXT);
    auto module = state().modules.find(module_handle);
    if (!module || !handle || !name) return INVALID_HANDLE;
    auto found = module->kernels.find(name);
    if (found == module->kernels.end()) return NOT_FOUND;
    *handle = state().functions.add(std::make_shared<Function>(Function{found->second, module_handle, module->device}));
    return SUCCESS;
}

extern "C" int cuModuleUnload(void* handle) {
    ENTER("cuModuleUnload", CONTEXT);
    auto module = state().modules.find(handle);
    if (!module) return INVALID_HANDLE;
    give_outside(module->device, MODULE_BYTES);
    state().modules.remove(handle);
    return SUCCESS;
}
