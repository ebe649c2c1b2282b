//! The instructions that sum products of bytes, and how they divide the depth of a product.

use crate::buffer::collected_up_to;
use crate::isa::Isa;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::isa::Level;

/// The instructions that sum products of bytes. No sum saturates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    /// Portable Rust.
    Scalar,
    /// Products of signed bytes, and sums of pairs, in the instructions of every processor for ARM with 64 bits. The bytes of
    /// a row are [made signed](Dots::flips).
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Four products of signed bytes per lane, and their sum, in one instruction of ARM's extension `dotprod`. The bytes
    /// of a row are [made signed](Dots::flips).
    #[cfg(target_arch = "aarch64")]
    Dotprod,
    /// The same for unsigned by signed bytes, with the extension `i8mm`.
    #[cfg(target_arch = "aarch64")]
    I8mm,
    /// Pairs of products, added with saturation to 16 bits; weights are [split](super::remainder::Remainder) so that none
    /// saturates.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Two products of 16-bit numbers per lane, and their sum, in one instruction. Rows have 16-bit numbers, and weights are
    /// widened to 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2Words,
    /// Four products of bytes per lane, and their sum, in one instruction.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// The same, with twice as many lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    /// 64 products for each sum of 16 rows and 16 columns in one instruction. Other sizes use
    /// [`Instructions::Avx512Vnni`], which reads the same panels.
    #[cfg(target_arch = "x86_64")]
    Amx,
}

/// The instructions that a product uses, and the proof that this processor has them. Only this module creates it, from
/// an [`Isa`] and a query of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dots(Instructions);

/// The quads of a row per AMX instruction.
const QUADS: usize = 16;
/// The rows per AMX instruction.
const ROWS: usize = 16;

impl Dots {
    /// Returns the instructions; this processor has them.
    pub fn instructions(self) -> Instructions {
        self.0
    }

    /// The name of the instructions.
    pub fn name(self) -> &'static str {
        match self.0 {
            Instructions::Scalar => "scalar",
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => "NEON",
            #[cfg(target_arch = "aarch64")]
            Instructions::Dotprod => "NEON dotprod",
            #[cfg(target_arch = "aarch64")]
            Instructions::I8mm => "NEON i8mm",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2Words => "AVX2, 16 bits",
            #[cfg(target_arch = "x86_64")]
            Instructions::AvxVnni => "AVX-VNNI",
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx512Vnni => "AVX-512 VNNI",
            #[cfg(target_arch = "x86_64")]
            Instructions::Amx => "AMX",
        }
    }

    /// The best instructions that this processor has at a level.
    #[cfg(target_arch = "x86_64")]
    pub fn of(isa: Isa) -> Dots {
        use std::arch::is_x86_feature_detected as has;
        Dots(match isa.level() {
            Level::Avx512 if has!("avx512vnni") && Isa::takes_amx() => Instructions::Amx,
            Level::Avx512 if has!("avx512vnni") => Instructions::Avx512Vnni,
            Level::Avx512 | Level::Avx2 if has!("avxvnni") => Instructions::AvxVnni,
            Level::Avx512 | Level::Avx2 => Instructions::Avx2,
            Level::Neon | Level::Scalar => Instructions::Scalar,
        })
    }

    /// The best instructions that this processor has at a level.
    #[cfg(target_arch = "aarch64")]
    pub fn of(isa: Isa) -> Dots {
        use std::arch::is_aarch64_feature_detected as has;
        Dots(match isa.level() {
            Level::Neon if has!("i8mm") => Instructions::I8mm,
            Level::Neon if has!("dotprod") => Instructions::Dotprod,
            Level::Neon => Instructions::Neon,
            _ => Instructions::Scalar,
        })
    }

    /// The best instructions that this processor has at a level.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn of(_: Isa) -> Dots {
        Dots(Instructions::Scalar)
    }

    /// Returns all instructions that this processor has, each with a level; tests iterate over them.
    #[cfg(test)]
    pub fn available() -> Vec<(Isa, Dots)> {
        let mut all: Vec<_> = Isa::available().map(|isa| (isa, Dots::of(isa))).collect();
        #[cfg(target_arch = "x86_64")]
        for isa in Isa::available() {
            let has_vnni = std::arch::is_x86_feature_detected!("avx512vnni") && isa.level() == Level::Avx512;
            let others = [
                (Instructions::Avx2, isa.level() == Level::Avx2),
                (Instructions::Avx512Vnni, has_vnni),
                (Instructions::Amx, has_vnni && Isa::has_amx()),
            ];
            all.extend(others.into_iter().filter(|(_, has)| *has).map(|(instructions, _)| (isa, Dots(instructions))));
        }
        #[cfg(target_arch = "aarch64")]
        {
            let has_dotprod = std::arch::is_aarch64_feature_detected!("dotprod");
            let others = [(Instructions::Neon, true), (Instructions::Dotprod, has_dotprod)];
            all.extend(others.into_iter().filter(|(_, has)| *has).map(|(each, _)| (Isa::widest(), Dots(each))));
        }
        all.dedup();
        all
    }

    /// The instructions on 16-bit numbers at the same level, if they are worth it: those for bytes saturate.
    pub(super) fn in_words(self) -> Option<Dots> {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => Some(Dots(Instructions::Avx2Words)),
            _ => None,
        }
    }

    /// The codes in four bytes of a row.
    pub fn codes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2Words => 2,
            _ => 4,
        }
    }

    /// Whether pairs of products saturate, unless the weights are split.
    pub fn saturates(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => true,
            _ => false,
        }
    }

    /// Whether the instructions subtract 128 from the bytes of the left operand, which makes them signed.
    pub fn flips(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon | Instructions::Dotprod => true,
            _ => false,
        }
    }

    /// Returns the instructions for a depth of `pieces` pieces with `len` bytes each.
    ///
    /// For a row and 16 columns, VNNI needs half a cycle per quad. AMX needs 16 cycles for up to 16 quads of 16 rows,
    /// and 40 cycles to load and store their sums. Per row, this is one cycle for every 16 quads of each piece, plus
    /// 2.5. AMX is therefore faster from 32 bytes in one piece on.
    pub fn for_depth(self, pieces: usize, len: usize) -> Dots {
        let vectors = self.without_tiles();
        if self.time(pieces, len) < vectors.time(pieces, len) {
            self
        } else {
            vectors
        }
    }

    /// The time to sum `pieces` pieces of `len` bytes for a row and a vector of columns, in instructions. The processor
    /// executes two vector instructions per cycle.
    pub fn time(self, pieces: usize, len: usize) -> usize {
        let quads = len.div_ceil(4);
        match self.0 {
            // Four multiplications and additions, with conversions.
            Instructions::Scalar => 16 * pieces * quads,
            // Two multiplications, and four additions of pairs.
            #[cfg(target_arch = "aarch64")]
            Instructions::Neon => 6 * pieces * quads,
            #[cfg(target_arch = "aarch64")]
            Instructions::Dotprod | Instructions::I8mm => pieces * quads,
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2 => 3 * pieces * quads,
            // Measured: a quarter more, for twice as many multiplications and additions of half as many products.
            #[cfg(target_arch = "x86_64")]
            Instructions::Avx2Words => 15 * pieces * quads / 4,
            #[cfg(target_arch = "x86_64")]
            Instructions::AvxVnni | Instructions::Avx512Vnni => pieces * quads,
            #[cfg(target_arch = "x86_64")]
            Instructions::Amx => 2 * pieces * quads.div_ceil(QUADS) + 5,
        }
    }

    /// Returns the instructions for `rows` rows times a panel. With fewer rows than a tile has, AMX would be partly
    /// idle, and reading the panel takes as long as VNNI needs.
    pub fn for_rows(self, rows: usize) -> Dots {
        if rows < ROWS {
            self.without_tiles()
        } else {
            self
        }
    }

    /// Rounds `rows` up to whole tiles.
    pub fn whole_tiles(self, rows: usize) -> usize {
        if self.has_tiles() {
            rows.next_multiple_of(2 * ROWS)
        } else {
            rows
        }
    }

    /// The bytes of a piece of `len` codes, which [`cut`](Dots::cut) can divide into equal parts.
    pub fn padded(self, len: usize) -> usize {
        let quads = len.div_ceil(4);
        4 * quads.next_multiple_of(self.parts(quads)) * 4 / self.codes()
    }

    /// Divides pieces of `quads` quads into parts for one instruction each: returns the offset of each part, and its
    /// quads.
    pub fn cut(self, pieces: &[usize], quads: usize) -> (Vec<usize>, usize) {
        let parts = self.parts(quads);
        debug_assert!(quads.is_multiple_of(parts), "{quads} quads in {parts} parts");
        let each = quads / parts;
        let offsets = pieces.iter().flat_map(|&piece| (0..parts).map(move |part| piece + part * each * 4));
        (collected_up_to(pieces.len() * parts, offsets), each)
    }

    /// The number of parts of a piece of `quads` quads.
    fn parts(self, quads: usize) -> usize {
        if self.has_tiles() {
            quads.div_ceil(QUADS).max(1)
        } else {
            1
        }
    }

    pub fn has_tiles(self) -> bool {
        self != self.without_tiles()
    }

    /// Returns the vector instructions that read the same panels.
    #[cfg(target_arch = "x86_64")]
    pub fn without_tiles(self) -> Dots {
        match self.0 {
            Instructions::Amx => Dots(Instructions::Avx512Vnni), // AMX is used only if VNNI is available
            _ => self,
        }
    }

    /// Returns the same instructions; there are no tiles.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn without_tiles(self) -> Dots {
        self
    }
}
