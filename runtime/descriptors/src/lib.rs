//! Descriptors: types, traits and constants that describe a computation or its numbers, such as the sizes of a
//! convolution or a program of elementwise functions.
//!
//! Operators and the kernels of every device share them. The functions of a descriptor only answer questions about it.
//! They work on sizes that come from models, so their arithmetic detects overflow, or saturates.

#![forbid(unsafe_code)]

pub mod attention;
pub mod broadcast;
pub mod cast;
pub mod conv;
pub mod gemm;
pub mod minifloat;
pub mod number;
pub mod pool;
pub mod program;
pub mod recurrent;
pub mod reduce;
pub mod sample;
pub mod strided;
pub mod word;
