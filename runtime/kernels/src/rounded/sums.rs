//! The instructions that sum products of pairs, and the sizes of their tiles.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use crate::isa::Isa;
#[cfg(target_arch = "x86_64")]
use crate::isa::Level;

/// The columns per vector.
pub(super) const LANES: usize = 16;
/// The most rows and vectors of a tile, whose sums fit in the registers.
pub(super) const ROWS: usize = 8;
pub(super) const VECTORS: usize = 3;

/// The proof that this processor has AVX512_BF16. Only this module creates it, from an [`Isa`] and a query of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairSums(Proof);

/// Other architectures have no proof.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {}

#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Proof;

impl PairSums {
    /// Returns the proof, if the level is AVX-512 and this processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    pub fn of(isa: Isa) -> Option<PairSums> {
        let has = isa.level() == Level::Avx512 && std::arch::is_x86_feature_detected!("avx512bf16");
        has.then_some(PairSums(Proof))
    }

    /// The time of an instruction, in instructions that multiply and add vectors of `f32`. Intel's processors begin one in
    /// two cycles, and two of the latter in a cycle. Those of AMD begin as many of both.
    #[cfg(target_arch = "x86_64")]
    pub fn time(self) -> f64 {
        static TIME: OnceLock<f64> = OnceLock::new();
        *TIME.get_or_init(|| {
            let found = std::arch::x86_64::__cpuid(0);
            let vendor = [found.ebx, found.edx, found.ecx].map(u32::to_le_bytes);
            if vendor.concat() == b"GenuineIntel" {
                4.0
            } else {
                1.0
            }
        })
    }

    /// Stands for the time of instructions that no processor has.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn time(self) -> f64 {
        match self.0 {}
    }

    /// Returns no proof.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of(_: Isa) -> Option<PairSums> {
        None
    }

    /// Stands for code that needs a proof: nobody has one.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn never(self) {
        match self.0 {}
    }
}

/// The proof that this processor has AMX for `bf16`, and AVX512_BF16. Only this module creates it.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileSums(Proof);

#[cfg(target_arch = "x86_64")]
impl TileSums {
    /// Returns the proof, if the level is AVX-512, and products use the tiles that this processor has.
    pub fn of(isa: Isa) -> Option<TileSums> {
        use std::arch::x86_64::__cpuid_count;
        /// The bit of AMX-BF16 in register EDX of leaf 7.
        const HALVES: u32 = 1 << 22;
        // A processor with AMX has leaf 7.
        let has = PairSums::of(isa).is_some() && Isa::takes_amx() && __cpuid_count(7, 0).edx & HALVES != 0;
        has.then_some(TileSums(Proof))
    }
}
