//! CPU kernels of candle-plan: plain slices in, plain slices out, no tensors, no plan.
//!
//! Every kernel has one scalar form, which defines its result, and faster forms that are chosen at run time from the
//! processor's features ([`isa::Isa`]) and tested against the scalar one. Results do not depend on the number of threads.
//! Shapes are checked by the caller (the op); a kernel asserts what its memory safety rests on.

pub mod allocator;
pub mod attention;
pub mod blocked;
pub mod broadcast;
pub mod buffer;
pub mod cast;
pub mod concat;
pub mod conv;
mod conv_shape;
pub mod elementwise;
pub mod gemm;
pub mod indexed;
pub mod int8;
pub mod isa;
pub mod lanes;
pub mod machine;
pub mod mapping;
pub mod minifloat;
pub mod norm;
pub mod pad;
mod padded_row;
pub mod peaks;
pub mod pool;
mod prefetch;
pub mod program;
pub mod quantize;
pub mod real;
mod recent;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod rewrite;
pub mod sample;
pub mod scratch;
pub mod softmax;
pub mod strided;
pub mod threads;
pub mod topk;
pub mod transpose;
pub mod vector;
pub mod word;
