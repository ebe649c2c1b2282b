// Fused elementwise functions: a list of instructions rewrites the accumulator of each element.
#include "functions.cuh"

enum Step : u32 { Load, Save, ApplyUnary, ApplyBinary, ApplyReverse, Select };
enum Source : u32 { Input, Constant, Saved };

// An operand of an instruction: the index of an input or of a slot, or a constant.
struct Operand {
    u32 source, index;
    f32 value;
};
struct Instruction {
    u32 step;
    // The slot of `Save`.
    u32 slot;
    Function function;
    Operand first, second;
};

const u32 INPUTS = 32, SLOTS = 16;
struct Program {
    u64 code, result;
    u32 length, count;
    // Whether the accumulator starts with the existing element of the result.
    u32 continues;
    // Whether every input has the result's shape.
    u32 aligned;
    Dims dims;
    u64 inputs[INPUTS];
    Strides strides[INPUTS];
};

HOST_DEVICE f32 read(const Program& p, const Operand& operand, const f32* saved, u32 i) {
    switch (operand.source) {
        case Input: {
            i64 place = p.aligned ? i : offset(p.dims, p.strides[operand.index], i);
            return at<const f32>(p.inputs[operand.index])[place];
        }
        case Saved: return saved[operand.index];
        default: return operand.value;
    }
}

HOST_DEVICE void run(const Program& p) {
    const Instruction* code = at<const Instruction>(p.code);
    f32* result = at<f32>(p.result);
    for (u32 i = first(); i < p.count; i += stride()) {
        f32 saved[SLOTS];
        f32 acc = p.continues ? result[i] : 0;
        for (u32 k = 0; k < p.length; k++) {
            const Instruction& step = code[k];
            switch (step.step) {
                case Load: acc = read(p, step.first, saved, i); break;
                case Save: saved[step.slot] = acc; break;
                case ApplyUnary: acc = unary(step.function, acc); break;
                case ApplyBinary: acc = binary(step.function.code, acc, read(p, step.first, saved, i)); break;
                case ApplyReverse: acc = binary(step.function.code, read(p, step.first, saved, i), acc); break;
                case Select: acc = acc != 0 ? read(p, step.first, saved, i) : read(p, step.second, saved, i); break;
            }
        }
        result[i] = acc;
    }
}

KERNEL(program, Program, run)
