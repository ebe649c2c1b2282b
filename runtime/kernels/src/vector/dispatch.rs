//! The choice of the vector type of an instruction set.

/// Evaluates `$body` with `$V` as the vector type of the instruction set, inside a function with the instruction set's
/// features. `$body` sees only the arguments `$name: $type`.
macro_rules! dispatch_isa {
    ($isa:expr, ($($name:ident: $type:ty = $value:expr),* $(,)?), $V:ident => $body:expr) => {{
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
        fn avx512($($name: $type),*) {
            type $V = $crate::vector::F32x16;
            $body
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn avx2($($name: $type),*) {
            type $V = $crate::vector::F32x8;
            $body
        }
        #[cfg(target_arch = "aarch64")]
        fn neon($($name: $type),*) {
            type $V = $crate::vector::F32x4x2;
            $body
        }
        fn scalar($($name: $type),*) {
            type $V = f32;
            $body
        }
        match $crate::isa::Isa::level($isa) {
            // SAFETY: the `Isa` proves that the processor has its level.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx512 => unsafe { avx512($($value),*) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            $crate::isa::Level::Avx2 => unsafe { avx2($($value),*) },
            #[cfg(target_arch = "aarch64")]
            $crate::isa::Level::Neon => neon($($value),*),
            _ => scalar($($value),*),
        }
    }};
}
pub(crate) use dispatch_isa;
