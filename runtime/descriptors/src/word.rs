//! Element types for kernels that only move elements.

use bytemuck::Pod;

/// An unsigned integer that stands for any element type of its width.
pub trait Word: Pod + Send + Sync + PartialEq + std::fmt::Debug {}

impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}
