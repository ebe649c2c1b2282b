//! A kernel's name, and how many threads run it.

/// A kernel: `softmax` of the module `softmax` for elements of kind `f32` is `softmax_f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The file of `kernels/`, without `.cu`.
    pub module: &'static str,
    /// The kernel.
    pub name: &'static str,
    /// What it is compiled for; empty where there is one form.
    pub kind: &'static str,
}

impl std::fmt::Display for Symbol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = if self.kind.is_empty() { "" } else { "_" };
        write!(f, "{}{line}{}", self.name, self.kind)
    }
}

/// The threads of a block, as `BLOCK` of `device.cuh`.
pub const BLOCK: u32 = 256;
/// The most blocks along y and along z.
pub const MOST_BLOCKS: u32 = 65_535;

/// How many threads run a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The blocks along x, y and z; none where any is 0.
    pub blocks: [u32; 3],
    /// The threads of each.
    pub threads: u32,
}

impl Grid {
    /// A thread for each of `count` elements, up to where threads go round.
    pub fn over(count: u32) -> Grid {
        /// As many blocks as keep every GPU busy.
        const MOST: u32 = 1 << 16;
        Grid { blocks: [count.div_ceil(BLOCK).min(MOST), 1, 1], threads: BLOCK }
    }

    /// A block for each of `count` pieces of work, up to where blocks go round.
    pub fn blocks(count: u32) -> Grid {
        /// The most that a grid has along x is 2³¹ − 1.
        const MOST: u32 = 1 << 30;
        Grid { blocks: [count.min(MOST), 1, 1], threads: BLOCK }
    }
}
