//! The name of a kernel, and the number of threads that run it.

/// A kernel: `softmax` in the module `softmax`, compiled for `f32`, is `softmax_f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file in `kernels/`, without `.cu`.
    pub module: &'static str,
    /// The name of the kernel.
    pub name: &'static str,
    /// The element type that it is compiled for; empty if there is only one version.
    pub kind: &'static str,
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = if self.kind.is_empty() { "" } else { "_" };
        write!(f, "{}{line}{}", self.name, self.kind)
    }
}

/// The threads of a block; equals `BLOCK` in `device.cuh`.
pub const BLOCK: u32 = 256;
/// The maximum number of blocks along y and along z.
pub const MOST_BLOCKS: u32 = 65_535;

/// The number of threads that run a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The number of blocks along x, y and z. If any is 0, nothing runs.
    pub blocks: [u32; 3],
    /// The number of threads per block.
    pub threads: u32,
}

impl Grid {
    /// One thread per element for `count` elements, up to a maximum; then threads loop.
    pub fn over(count: u32) -> Grid {
        /// Enough blocks to keep every GPU busy.
        const MOST: u32 = 1 << 16;
        Grid { blocks: [count.div_ceil(BLOCK).min(MOST), 1, 1], threads: BLOCK }
    }

    /// One block per unit of work for `count` units, up to a maximum; then blocks loop.
    pub fn blocks(count: u32) -> Grid {
        /// CUDA allows up to 2³¹ − 1 blocks along x.
        const MOST: u32 = 1 << 30;
        Grid { blocks: [count.min(MOST), 1, 1], threads: BLOCK }
    }
}
