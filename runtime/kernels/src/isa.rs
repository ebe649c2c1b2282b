//! Instruction sets: which ones the processor has, and which one the kernels use.

use std::sync::OnceLock;

/// An instruction set that kernels are compiled for, from narrowest to widest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Portable Rust, on any architecture: the reference for the other levels.
    Scalar,
    /// ARM with 64 bits, which always has NEON: two registers of 128 bits per vector.
    Neon,
    /// x86-64 with AVX2, FMA and F16C: 256-bit vectors.
    Avx2,
    /// x86-64 with AVX-512 F, BW, CD, DQ and VL (and all of [`Level::Avx2`]): 512-bit vectors.
    Avx512,
}

impl Level {
    /// The level's name in the environment variable `CANDLE_PLAN_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Level::Scalar => "scalar",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

/// The level that kernels use, and the proof that this processor supports it.
///
/// Only this module creates an `Isa`, after it has queried the processor. The holder of an `Isa` may therefore call
/// functions that are compiled for its level, and for the levels below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

impl Isa {
    /// Portable Rust, which runs on every processor.
    pub const SCALAR: Isa = Isa(Level::Scalar);

    /// Returns the level; this processor supports it.
    #[inline(always)]
    pub const fn level(self) -> Level {
        self.0
    }

    /// Returns the level in the environment variable `CANDLE_PLAN_ISA`: `scalar`, `neon`, `avx2`, `avx512` or `amx`.
    /// `amx` is AVX-512 with AMX tiles; it is the default where the processor has them. Without the variable, returns the
    /// widest level of this processor, except for NEON: some of its tests take too long in an emulator to end. Reads the
    /// variable once.
    pub fn get() -> Isa {
        static CHOSEN: OnceLock<Isa> = OnceLock::new();
        *CHOSEN.get_or_init(|| Isa::named(&wanted()).ok().flatten().unwrap_or_else(Isa::default_level))
    }

    /// Whether matrix products use AMX tiles at the level AVX-512: the processor has them, and `CANDLE_PLAN_ISA`
    /// is not `avx512`. Queries it once.
    pub fn takes_amx() -> bool {
        static TAKEN: OnceLock<bool> = OnceLock::new();
        *TAKEN.get_or_init(|| wanted() != Level::Avx512.name() && Isa::has_amx())
    }

    /// Checks that the environment variable `CANDLE_PLAN_ISA` is empty or names a level that this processor supports.
    ///
    /// # Errors
    /// It has another value. The message states the value, and the allowed ones.
    pub fn check() -> Result<(), String> {
        Isa::named(&wanted()).map(|_| ())
    }

    /// Returns the level with this name; `None` for an empty name.
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

    /// Whether this processor has AMX with 8-bit products, and the operating system permits it to this process. The
    /// call requests this permission.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub fn has_amx() -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        /// The bits of AMX-TILE and AMX-INT8 in register EDX of leaf 7.
        const TILES: u32 = 1 << 24 | 1 << 25;
        /// `ARCH_REQ_XCOMP_PERM`, and the state component to request: the tile data.
        const REQUEST: libc::c_ulong = 0x1023;
        const TILE_DATA: libc::c_ulong = 18;
        __cpuid(0).eax >= 7
            && __cpuid_count(7, 0).edx & TILES == TILES
            // SAFETY: the call takes two numbers and reads no memory. It fails on a system that does not know it.
            && unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) } == 0
    }

    /// Other platforms have no AMX.
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    pub fn has_amx() -> bool {
        false
    }

    /// Returns every level that this processor supports, narrowest first; tests iterate over them.
    pub fn available() -> impl Iterator<Item = Isa> {
        #[cfg(target_arch = "aarch64")]
        const LEVELS: [Level; 2] = [Level::Scalar, Level::Neon];
        #[cfg(not(target_arch = "aarch64"))]
        const LEVELS: [Level; 3] = [Level::Scalar, Level::Avx2, Level::Avx512];
        let widest = Isa::widest();
        LEVELS.into_iter().filter(move |level| *level <= widest.level()).map(Isa)
    }

    /// The level without a choice of the user.
    fn default_level() -> Isa {
        match Isa::widest() {
            Isa(Level::Neon) => Isa::SCALAR,
            isa => isa,
        }
    }

    /// The widest level that this processor supports.
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

    /// The widest level that this processor supports.
    #[cfg(target_arch = "aarch64")]
    pub fn widest() -> Isa {
        Isa(Level::Neon)
    }

    /// The widest level that this processor supports.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn widest() -> Isa {
        Isa::SCALAR
    }
}

/// The value of the environment variable `CANDLE_PLAN_ISA`.
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
