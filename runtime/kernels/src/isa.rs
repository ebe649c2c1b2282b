//! Instruction sets: what this processor has, and which of it is used.

use std::sync::OnceLock;

/// An instruction set that kernels are compiled for, from the plainest to the widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable Rust, on any architecture: the reference of the others.
    Scalar,
    /// x86-64 with AVX2, FMA and F16C: 256-bit vectors.
    Avx2,
    /// x86-64 with AVX-512 F, BW, CD, DQ and VL (and all of [`Level::Avx2`]): 512-bit vectors.
    Avx512,
}

impl Level {
    /// The name by which the environment variable `CANDLE_PLAN_ISA` knows the level.
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

/// The level that kernels use, and the proof that this processor has it.
///
/// Only this module makes an `Isa`, after it asked the processor. So whoever holds one may call functions that are compiled
/// for its level, and for those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

impl Isa {
    /// Portable Rust, which every processor runs.
    pub const SCALAR: Isa = Isa(Level::Scalar);

    /// The level, which this processor has.
    #[inline(always)]
    pub const fn level(self) -> Level {
        self.0
    }

    /// The widest level of this processor, or the level that the environment variable `CANDLE_PLAN_ISA` names: `scalar`,
    /// `avx2`, `avx512`, or `amx`, for AVX-512 with the tiles that it has by itself, too. Read once.
    pub fn get() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| Isa::named(&wanted()).ok().flatten().unwrap_or_else(Isa::widest))
    }

    /// Whether products of bytes use the tiles of AMX at the level AVX-512: where the processor has them, and the
    /// environment variable `CANDLE_PLAN_ISA` does not name `avx512`. Asked once.
    pub fn takes_amx() -> bool {
        static TAKEN: OnceLock<bool> = OnceLock::new();
        *TAKEN.get_or_init(|| wanted() != Level::Avx512.name() && Isa::has_amx())
    }

    /// Whether the environment variable `CANDLE_PLAN_ISA` names a level of this processor, or nothing.
    ///
    /// # Errors
    /// What it names instead, and what it may name.
    pub fn check() -> Result<(), String> {
        Isa::named(&wanted()).map(|_| ())
    }

    /// The level of a name; none where there is no name.
    fn named(name: &str) -> Result<Option<Isa>, String> {
        let found = match name {
            "" => return Ok(None),
            "amx" => Some(Isa::widest()).filter(|isa| isa.level() == Level::Avx512 && Isa::has_amx()),
            _ => Isa::available().find(|isa| isa.level().name() == name),
        };
        found.map(Some).ok_or_else(|| {
            let names: Vec<_> = Isa::available().map(|isa| isa.level().name()).collect();
            format!("CANDLE_PLAN_ISA is {name:?}, and this processor has {}", names.join(", "))
        })
    }

    /// Whether this processor has AMX with products of bytes, and the operating system lets this process use it, which it
    /// is asked for.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn has_amx() -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        /// The bits of AMX-TILE and AMX-INT8 in register EDX of leaf 7.
        const TILES: u32 = 1 << 24 | 1 << 25;
        /// `ARCH_REQ_XCOMP_PERM`, and the state that permission is asked for: the tiles' contents.
        const REQUEST: libc::c_ulong = 0x1023;
        const TILE_DATA: libc::c_ulong = 18;
        __cpuid(0).eax >= 7
            && __cpuid_count(7, 0).edx & TILES == TILES
            // SAFETY: the call takes two numbers, reads no memory, and fails where the system does not know it.
            && unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) } == 0
    }

    /// Elsewhere nobody asks for them.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn has_amx() -> bool {
        false
    }

    /// Every level that this processor can run, plainest first: what a test walks through.
    pub fn available() -> impl Iterator<Item = Isa> {
        let widest = Isa::widest();
        [Level::Scalar, Level::Avx2, Level::Avx512].into_iter().filter(move |level| *level <= widest.level()).map(Isa)
    }

    /// The widest level of this processor.
    #[cfg(target_arch = "x86_64")]
    pub fn widest() -> Isa {
        use std::arch::is_x86_feature_detected as has;
        if !(has!("avx2") && has!("fma") && has!("f16c")) {
            Isa::SCALAR
        } else if has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl") {
            Isa(Level::Avx512)
        } else {
            Isa(Level::Avx2)
        }
    }

    /// The widest level of this processor.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn widest() -> Isa {
        Isa::SCALAR
    }
}

/// What the environment variable `CANDLE_PLAN_ISA` says.
fn wanted() -> String {
    std::env::var_os("CANDLE_PLAN_ISA").unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names() {
        for isa in Isa::available() {
            assert_eq!(Isa::named(isa.level().name()), Ok(Some(isa)));
        }
        assert_eq!(Isa::named(""), Ok(None));
        for name in ["AVX2", "vnni", "avx2 "] {
            assert!(Isa::named(name).is_err_and(|error| error.contains("this processor has scalar")), "{name}");
        }
        assert_eq!(Isa::named("amx").is_ok(), Isa::widest().level() == Level::Avx512 && Isa::has_amx());
    }
}
