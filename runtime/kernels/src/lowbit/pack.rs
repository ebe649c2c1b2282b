//! A matrix of codes, packed in panels that a tile reads from front to back.

use super::numbers::Numbers;
use crate::gemm::tiles::Tiles;
use crate::gemm::Lines;
use crate::isa::Isa;
use crate::scratch::Scratch;
use crate::threads::Threads;

/// The vectors of a panel. The result of a multiply-add is there after about four others have started.
pub(super) const PANEL: usize = 4;

/// A matrix `W [n, k]` of codes. Each row consists of blocks of `block` codes; the last one may be partial. The number
/// of a code is `(code − zero point) · scale`, with the zero point and the scale of its block.
#[derive(Debug, Clone, Copy)]
pub struct LowBitCodes<'a> {
    /// The rows.
    pub n: usize,
    /// The codes of a row.
    pub k: usize,
    /// The bits of a code: 2, 4 or 8.
    pub bits: usize,
    /// The codes of a block, a multiple of 16.
    pub block: usize,
    /// `[n, blocks, block · bits / 8]`: the codes. The low bits of a byte come first.
    pub bytes: &'a [u8],
    /// `[n, blocks]`.
    pub scales: &'a [f32],
    /// `[n, blocks]`; half of the number of codes if it is absent.
    pub zeros: Option<&'a [f32]>,
}

/// The zero points of a packed matrix.
#[derive(Debug, Clone)]
pub(super) enum Zeros {
    /// All are this integer.
    All(u8),
    /// One for each block.
    Each(Numbers),
}

/// [`LowBitCodes`] in panels of [`PANEL`] vectors of rows of `W`. In a panel, these rows are side by side, as columns.
#[derive(Debug, Clone)]
pub struct PackedCodes {
    pub(super) isa: Isa,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) bits: usize,
    pub(super) block: usize,
    /// The rows of `W` in a panel.
    pub(super) width: usize,
    /// The words of a column.
    pub(super) deep: usize,
    /// `[panel][word][column]`: words of 32 bits. The columns of the last panel are padded with zeros.
    words: Lines,
    /// `[panel][block][column]`.
    pub(super) scales: Numbers,
    /// In the same order.
    pub(super) zeros: Zeros,
}

/// Words that are worth several threads.
const SPLIT: usize = 1 << 15;

impl PackedCodes {
    /// Packs codes.
    ///
    /// # Panics
    /// The slices do not fit the sizes, or a size is not supported.
    pub fn new(isa: Isa, threads: &Threads, codes: &LowBitCodes) -> PackedCodes {
        let LowBitCodes { n, k, bits, block, .. } = *codes;
        assert!(matches!(bits, 2 | 4 | 8) && block > 0 && block % 16 == 0, "{bits} bits in blocks of {block}");
        let (blocks, width) = (k.div_ceil(block), PANEL * Tiles::of(isa).lanes);
        let deep = blocks * (block * bits / 32);
        assert!(codes.bytes.len() == n * deep * 4 && codes.scales.len() == n * blocks, "{n} x {k} codes");
        let len = n.div_ceil(width) * width * deep;
        let serial = Threads::serial();
        let threads = if len > SPLIT { threads } else { &serial };
        let panel = |panel: usize, out: &mut [u32]| {
            let columns = (panel * width..(panel + 1) * width).take_while(|&column| column < n);
            out.fill(0);
            for (i, bytes) in columns.map(|column| &codes.bytes[column * deep * 4..][..deep * 4]).enumerate() {
                let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
                out[i..].iter_mut().step_by(width).zip(words).for_each(|(out, word)| *out = word);
            }
        };
        let words = Lines::overwritten(len, |words| {
            threads.for_each_chunk(bytemuck::cast_slice_mut::<f32, u32>(words), width * deep, panel);
        });
        let numbers = |numbers: &[f32]| Numbers::new(isa, &in_panels(numbers, [n, blocks], width));
        let zeros = match codes.zeros {
            None => Zeros::All(1 << (bits - 1)),
            Some(zeros) => match common(zeros) {
                Some(zero) => Zeros::All(zero),
                None => Zeros::Each(numbers(zeros)),
            },
        };
        PackedCodes { isa, n, k, bits, block, width, deep, words, scales: numbers(codes.scales), zeros }
    }

    /// The size of the packed matrix in bytes.
    pub fn bytes(&self) -> usize {
        let zeros = match &self.zeros {
            Zeros::All(_) => 0,
            Zeros::Each(zeros) => zeros.bytes(),
        };
        size_of_val(&self.words[..]) + self.scales.bytes() + zeros
    }

    /// The number of panels.
    pub(super) fn panels(&self) -> usize {
        self.n.div_ceil(self.width)
    }

    /// The place of the scales of a block of a panel.
    pub(super) fn place(&self, panel: usize, block: usize) -> usize {
        (panel * self.k.div_ceil(self.block) + block) * self.width
    }

    /// The end of the part of the depth that begins at `first` and has at most `depth` codes: whole blocks, or `depth` codes
    /// of a longer block.
    pub(super) fn end_of_part(&self, first: usize, depth: usize) -> usize {
        let (size, block) = (self.block, first / self.block);
        let end = if size <= depth { (block + depth / size) * size } else { (first + depth).min((block + 1) * size) };
        end.min(self.k)
    }

    /// The address of the words of a panel that hold the codes from `k` on, the first in a word.
    pub(super) fn words(&self, panel: usize, k: usize) -> *const u32 {
        self.words.as_ptr().cast::<u32>().wrapping_add((panel * self.deep + k * self.bits / 32) * self.width)
    }
}

/// The integer from 0 to 255 that all numbers are, if there is one.
fn common(numbers: &[f32]) -> Option<u8> {
    let first = *numbers.first()? as u8;
    numbers.iter().all(|&number| number == f32::from(first)).then_some(first)
}

/// `[n, blocks]` as `[panel][block][column]`, padded with zeros.
fn in_panels(numbers: &[f32], [n, blocks]: [usize; 2], width: usize) -> Scratch<f32> {
    assert_eq!(numbers.len(), n * blocks, "one number for each block");
    let mut out = Scratch::filled(0.0, n.div_ceil(width) * width * blocks);
    for (panel, out) in out.chunks_exact_mut((width * blocks).max(1)).enumerate() {
        for (block, out) in out.chunks_exact_mut(width).enumerate() {
            for (column, out) in (panel * width..n).zip(out) {
                *out = numbers[column * blocks + block];
            }
        }
    }
    out
}
