//! The sizes of [blocks of channels](crate::convolution::blocked).

use crate::isa::{Isa, Level};

/// The number of channels in a block, and the instruction set of the kernels that work on such blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    isa: Isa,
    block: usize,
}

/// Every size of a block, the largest first.
const SIZES: [usize; 2] = [Blocking::MOST, 8];

impl Blocking {
    /// The channels of the largest block.
    pub const MOST: usize = 16;

    /// Blocks of [`MOST`](Blocking::MOST) channels, which every level supports.
    pub const fn largest(isa: Isa) -> Blocking {
        Blocking { isa, block: Blocking::MOST }
    }

    /// Returns the sizes that a level supports, the largest first. A block has at least the channels of one vector.
    pub fn all(isa: Isa) -> impl Iterator<Item = Blocking> {
        let least = if isa.level() == Level::Avx512 { 16 } else { 8 };
        SIZES.into_iter().filter(move |&block| block >= least).map(move |block| Blocking { isa, block })
    }

    /// The instruction set.
    #[inline(always)]
    pub const fn isa(self) -> Isa {
        self.isa
    }

    /// The number of channels in a block.
    #[inline(always)]
    pub const fn block(self) -> usize {
        self.block
    }
}

/// Evaluates `$body` as [`dispatch_isa`](crate::vector::dispatch_isa) does, with `$BLOCK` as the number of channels in a
/// block.
macro_rules! dispatch_blocking {
    ($blocking:expr, $arguments:tt, $V:ident, $BLOCK:ident => $body:expr) => {
        match $blocking.block() {
            $crate::blocking::Blocking::MOST => $crate::vector::dispatch_isa!($blocking.isa(), $arguments, $V => {
                const $BLOCK: usize = $crate::blocking::Blocking::MOST;
                $body
            }),
            _ => $crate::vector::dispatch_isa!($blocking.isa(), $arguments, $V => {
                // With AVX-512, there are no blocks of 8. They would be shorter than a vector.
                const $BLOCK: usize = if <$V as $crate::vector::Vector>::LANES > 8 { 16 } else { 8 };
                $body
            }),
        }
    };
}
pub(crate) use dispatch_blocking;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every size of a block at every level that this processor supports.
    pub fn every() -> impl Iterator<Item = Blocking> {
        Isa::available().flat_map(Blocking::all)
    }

    #[test]
    fn every_level_has_the_largest_block() {
        for isa in Isa::available() {
            assert_eq!(Blocking::all(isa).next(), Some(Blocking::largest(isa)));
            let expected: &[usize] = if isa.level() == Level::Avx512 { &[16] } else { &[16, 8] };
            assert_eq!(Blocking::all(isa).map(Blocking::block).collect::<Vec<_>>(), expected);
        }
    }
}
