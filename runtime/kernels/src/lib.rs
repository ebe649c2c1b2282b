//! CPU kernels of candle-plan. They read and write plain slices, and do not depend on tensors or plans.
//!
//! Every kernel has a scalar version, which defines its result. Faster versions are selected at run time from the
//! processor's features ([`isa::Isa`]) and tested against the scalar one. Results do not depend on the number of
//! threads. The caller (the op) checks shapes; a kernel asserts only what its memory safety requires.

pub mod alternative;
pub mod attention;
pub mod blocking;
pub mod cast;
pub mod concat;
pub mod convolution;
pub mod distance;
pub mod elementwise;
pub mod float_types;
mod form;
pub mod gather_scatter;
pub mod gemm;
pub mod int8;
pub mod isa;
pub mod lane_loops;
pub mod lowbit;
pub mod norm;
pub mod pad;
mod padded_row;
pub mod peaks;
pub mod pool;
mod prefetch;
pub mod products;
pub mod program;
pub mod quantize;
mod recent_values;
pub mod recurrent;
pub mod reduce;
pub mod resize;
pub mod rewrite;
pub mod rounded;
pub mod sample;
pub mod scratch;
pub mod softmax;
pub mod strided;
pub mod threads;
pub mod topk;
pub mod transpose;
pub mod trees;
pub mod vector;

use candle_plan_descriptors::conv as conv_shape;
pub use candle_plan_descriptors::{broadcast, minifloat};
use candle_plan_memory::{buffer, uninit};
