// The configuration, injected failures, and the list of misuses.
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "queue.h"

namespace standin {

namespace {

const pid_t PROCESS = getpid();
// The exit code of a process that ends with an unread report.
const int UNREAD = 97;

std::string unread, handed_out;
std::map<std::string, long> calls;

// An upload that must end before the next call of the thread.
struct Unwaited {
    std::shared_ptr<Stream> stream;
    uint64_t operation = 0;
    size_t bytes = 0;
};
thread_local Unwaited unwaited;

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Reads a number of bytes, such as 64M. Returns whether the text is one.
bool read_bytes(const std::string& text, size_t& bytes) {
    size_t mark = text.empty() ? std::string::npos : std::string("KMG").find(text.back());
    std::string digits = mark == std::string::npos ? text : text.substr(0, text.size() - 1);
    if (!is_number(digits)) return false;
    bytes = strtoull(digits.c_str(), nullptr, 10) << (mark == std::string::npos ? 0 : 10 * (mark + 1));
    return true;
}

// Returns the text before the first `mark`, and writes the text after it to `rest`.
std::string head(const std::string& text, char mark, std::string& rest) {
    size_t at = text.find(mark);
    rest = at == std::string::npos ? "" : text.substr(at + 1);
    return text.substr(0, at);
}

// Whether the stand-in counts the calls of a function, and so can make one fail.
bool is_function(const std::string& symbol) {
    const char* const* each = FUNCTIONS;
    while (*each && symbol != *each) each++;
    return *each;
}

// Adds a failure SYMBOL:CALL:CODE or SYMBOL:CALL+:CODE. Returns whether the text has this form.
bool add_failure(std::vector<Failure>& failures, const std::string& text) {
    std::string call, code;
    std::string symbol = head(text, ':', call);
    std::string number = head(call, ':', code);
    bool and_later = !number.empty() && number.back() == '+';
    if (and_later) number.pop_back();
    failures.push_back({symbol, atol(number.c_str()), atoi(code.c_str()), and_later});
    return is_function(symbol) && is_number(number) && is_number(code);
}

bool mutate(Configuration& config, const std::string& what) {
    if (what == "wait") config.mutate_wait = true;
    else if (what == "arguments") config.mutate_arguments = true;
    else if (what == "source") config.mutate_source = true;
    else if (what == "past") config.mutate_past = true;
    else return false;
    return true;
}

bool set(Configuration& config, const std::string& key, const std::string& value) {
    std::string rest;
    if (key == "driver" && is_number(value)) config.driver = atoi(value.c_str());
    else if (key == "devices" && is_number(value)) config.devices = atoi(value.c_str());
    else if (key == "capability") {
        config.major = atoi(head(value, '.', rest).c_str());
        config.minor = atoi(rest.c_str());
    } else if (key == "name") config.name = value;
    else if (key == "memory") return read_bytes(value, config.memory);
    else if (key == "seed" && is_number(value)) config.seed = strtoull(value.c_str(), nullptr, 0);
    else if (key == "fail") return add_failure(config.failures, value);
    else if (key == "crash") config.crash = atol(value.c_str());
    else if (key == "lost") return add_failure(config.losses, value);
    else if (key == "upload" && (value == "late" || value == "staged")) config.staged_uploads = value == "staged";
    else if (key == "download" && (value == "late" || value == "waits")) config.late_downloads = value == "late";
    else if (key == "strict") config.strict = value == "1";
    else if (key == "pools") config.pools = value == "1";
    else if (key == "given") config.given = value == "1";
    else if (key == "jit") config.jit = value == "1";
    else if (key == "mutate") return mutate(config, value);
    else return false;
    return true;
}

// Reads "key=value,key=value". Returns the first invalid pair, or an empty text.
std::string read(Configuration& config, const std::string& text) {
    std::string rest = text;
    while (!rest.empty()) {
        std::string others, value;
        std::string pair = head(rest, ',', others);
        std::string key = head(pair, '=', value);
        if (!pair.empty() && !set(config, key, value)) return pair;
        rest = others;
    }
    return "";
}

std::string configure(Lock&, const char* text) {
    Configuration config;
    const char* environment = getenv("STANDIN");
    std::string wrong = read(config, text);
    if (wrong.empty()) wrong = read(config, environment ? environment : "");
    if (!wrong.empty()) return wrong;
    state().config = config;
    state().lost = 0;
    state().launches = 0;
    calls.clear();
    restart_draws();
    return "";
}

void at_exit() {
    if (getpid() != PROCESS || unread.empty()) return;
    fflush(nullptr);
    _exit(UNREAD);
}

struct Beginning {
    Beginning() {
        Lock lock(state().mutex);
        std::string wrong = configure(lock, "");
        if (!wrong.empty()) {
            fprintf(stderr, "stand-in: STANDIN has \"%s\", which means nothing\n", wrong.c_str());
            abort();
        }
        atexit(at_exit);
    }
} beginning;

bool is_patient(const char* symbol) {
    for (const char* each : {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuStreamSynchronize", "cuEventRecord",
                             "cuEventSynchronize", "cuCtxSynchronize", "cuGetErrorString"})
        if (!strcmp(each, symbol)) return true;
    return false;
}

// Whether a function needs memory pools. Old devices and some virtual devices do not have pools.
bool is_of_pools(const char* symbol) {
    for (const char* each : {"cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuDeviceGetDefaultMemPool"})
        if (!strcmp(each, symbol)) return true;
    return !strncmp(symbol, "cuMemPool", strlen("cuMemPool"));
}

void check_unwaited(const char* symbol) {
    if (!unwaited.stream || is_patient(symbol)) return;
    if (done(unwaited.stream) < unwaited.operation)
        report("%s is called while an upload of %zu bytes from pageable memory is not waited for", symbol, unwaited.bytes);
    unwaited = {};
}

}  // namespace

State& state() {
    static State& all = *new State;
    return all;
}

bool forked() { return getpid() != PROCESS; }

void must_be_waited_for(const std::shared_ptr<Stream>& stream, size_t bytes) { unwaited = {stream, given(stream), bytes}; }

std::string formatted(const char* format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return text;
}

void report(const char* format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "stand-in: %s\n", text);
    unread += std::string(text) + "\n";
}

void count(const char* what) { ++calls[what]; }

int enter(Lock& lock, const char* symbol, Needs needs, const Codes& codes, bool survives_loss) {
    if (forked()) return codes.not_initialized;
    lock = Lock(state().mutex);
    long call = ++calls[symbol];
    for (const Failure& each : state().config.losses)
        if (each.symbol == symbol && each.call == call) lose(lock, each.code);
    for (const Failure& each : state().config.failures)
        if (each.symbol == symbol && (each.and_later ? each.call <= call : each.call == call)) return each.code;
    if (needs != NOTHING && !state().initialized) return codes.not_initialized;
    if (needs == CONTEXT && current_device() < 0) return codes.no_context;
    if (!state().config.pools && is_of_pools(symbol)) {
        report("%s is called, and the device has no memory pools", symbol);
        return NOT_SUPPORTED;
    }
    if (state().lost && !survives_loss) return codes.lost ? codes.lost : state().lost;
    check_unwaited(symbol);
    return SUCCESS;
}

}  // namespace standin

using namespace standin;

// Configures the stand-in: the defaults, then the changes of `text`, then those of the variable STANDIN. Resets the counts
// of calls. Returns 1 if the text is invalid.
extern "C" int standin_configure(const char* text) {
    Lock lock(state().mutex);
    std::string wrong = configure(lock, text);
    if (!wrong.empty()) fprintf(stderr, "stand-in: \"%s\" means nothing\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
}

// The misuses since the last call, one sentence per line.
extern "C" const char* standin_report() {
    Lock lock(state().mutex);
    handed_out.swap(unread);
    unread.clear();
    return handed_out.c_str();
}

// The calls since the last configuration: lines of a function's name, or of what is counted, and a number.
extern "C" const char* standin_calls() {
    Lock lock(state().mutex);
    handed_out.clear();
    for (const auto& [symbol, count] : calls) handed_out += symbol + " " + std::to_string(count) + "\n";
    return handed_out.c_str();
}
