//! Vectors of `f32`, functions on them, and the same functions on slices.
//!
//! The functions ([`math`]) are written once, generic over [`Vector`]; a vector with one lane is a plain `f32`. They
//! use only correctly rounded operations, so every instruction set gives the same bits (except for NaN payloads).

pub(crate) mod arc;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
#[cfg(target_arch = "aarch64")]
pub(crate) mod dots;
mod four;
mod half;
pub(crate) mod math;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pow;
mod register;
mod scalar;
mod segments;
mod slices;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use dispatch::dispatch_isa;
pub(crate) use four::{Four, Together};
pub use half::Half;
pub(crate) use half::Stored;
pub(crate) use pow::short as short_power;
pub(crate) use register::Vector;
pub(crate) use slices::map;
pub use slices::*;
pub(crate) use words::Words;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::F32x8;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::F32x16;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::{transpose, F32x4x2};
