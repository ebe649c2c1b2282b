//! Loops over a fixed number of lanes, which the compiler vectorizes, and the macro that compiles such a loop once per
//! instruction set.
//!
//! A sum has [`LANES`] interleaved partial sums, which are added pairwise at the end. The order is the same for every
//! instruction set and every number of threads.

/// The number of partial results of a fold: four 512-bit vectors of `f32`, enough to hide the latency of an addition.
pub(crate) const LANES: usize = 64;

/// Compiles a function once per [`Level`](crate::isa::Level), and adds a first parameter, an [`Isa`](crate::isa::Isa),
/// that selects the version.
///
/// The body may use the constant `FMA`: whether the processor fuses a multiplication and an addition into one
/// instruction. With `up to (LEVEL)`, where `LEVEL` is a constant [`Level`](crate::isa::Level), higher levels run the
/// code of `LEVEL`. This saves code for element types that few models use.
macro_rules! per_isa {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)?
     ($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? where FMA $body:block) => {
        per_isa! {
            $(#[$meta])* $vis fn $name $(<$($generic: $bound),+>)?
            ($($arg: $kind),*) $(-> $result)? where FMA up to ($crate::isa::Level::Avx512) $body
        }
    };
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$($generic:ident: $bound:path),+>)?
     ($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? where FMA up to ($widest:expr) $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name $(<$($generic: $bound),+>)? (isa: $crate::isa::Isa, $($arg: $kind),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
            fn body<$($($generic: $bound,)+)? const FMA: bool>($($arg: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2 $(<$($generic: $bound),+>)? ($($arg: $kind),*) $(-> $result)? {
                body::<$($($generic,)+)? true>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c")]
            fn avx512 $(<$($generic: $bound),+>)? ($($arg: $kind),*) $(-> $result)? {
                body::<$($($generic,)+)? true>($($arg),*)
            }

            // Every processor with the architecture has NEON.
            #[cfg(target_arch = "aarch64")]
            if isa.level() == $crate::isa::Level::Neon && $widest as u8 >= $crate::isa::Level::Neon as u8 {
                return body::<$($($generic,)+)? true>($($arg),*);
            }
            // The compiler generates no code for a branch whose constant condition is false.
            #[cfg(target_arch = "x86_64")]
            match isa.level().min($widest) {
                $crate::isa::Level::Scalar | $crate::isa::Level::Neon => {}
                $crate::isa::Level::Avx2 => {
                    if const { $widest as u8 >= $crate::isa::Level::Avx2 as u8 } {
                        // SAFETY: `isa` proves that the processor has its level, and this level is not above it.
                        return unsafe { avx2 $(::<$($generic),+>)? ($($arg),*) };
                    }
                }
                $crate::isa::Level::Avx512 => {
                    if const { $widest as u8 >= $crate::isa::Level::Avx512 as u8 } {
                        // SAFETY: as above.
                        return unsafe { avx512 $(::<$($generic),+>)? ($($arg),*) };
                    }
                }
            }
            body::<$($($generic,)+)? false>($($arg),*)
        }
    };
}
pub(crate) use per_isa;

/// Folds a slice into [`LANES`] partial results (fewer for a short slice), and joins them pairwise.
#[inline(always)]
pub(crate) fn fold<T: Copy, A: Copy>(
    x: &[T],
    start: A,
    step: impl Fn(A, T) -> A + Copy,
    join: impl Fn(A, A) -> A + Copy,
) -> A {
    match x.len() {
        0..16 => fold_lanes::<T, A, 1>(x, start, step, join),
        16..128 => fold_lanes::<T, A, 16>(x, start, step, join),
        _ => fold_lanes::<T, A, LANES>(x, start, step, join),
    }
}

#[inline(always)]
fn fold_lanes<T: Copy, A: Copy, const W: usize>(
    x: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    join: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [start; W];
    let mut blocks = x.chunks_exact(W);
    for block in &mut blocks {
        for (lane, &value) in lanes.iter_mut().zip(block) {
            *lane = step(*lane, value);
        }
    }
    // The rest has its own copy of the lanes. An index that is not constant would keep the lanes of the loop above in
    // memory.
    let mut lanes: [A; W] = std::array::from_fn(|k| lanes[k]);
    let rest = blocks.remainder();
    if W == LANES {
        lanes.iter_mut().zip(rest).for_each(|(lane, &value)| *lane = step(*lane, value));
    } else {
        lanes
            .iter_mut()
            .enumerate()
            .for_each(|(k, lane)| *lane = rest.get(k).map_or(*lane, |&value| step(*lane, value)));
    }
    let mut width = W / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] = join(lanes[k], lanes[k + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Loads the first `W` elements; `pad` fills the lanes beyond the end of `x`.
#[inline(always)]
pub(crate) fn load<R: Copy, const W: usize>(x: &[R], pad: R) -> [R; W] {
    match x.first_chunk() {
        Some(block) => *block,
        None => {
            let mut block = [pad; W];
            for (lane, &v) in block.iter_mut().zip(x) {
                *lane = v;
            }
            block
        }
    }
}

/// Stores the lanes; drops those beyond the end of `y`.
#[inline(always)]
pub(crate) fn store<R: Copy, const W: usize>(block: [R; W], y: &mut [R]) {
    match y.first_chunk_mut() {
        Some(target) => *target = block,
        None => {
            for (target, v) in y.iter_mut().zip(block) {
                *target = v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_takes_every_element_once() {
        for len in [0, 1, 31, 32, 63, 64, 65, 200] {
            let x: Vec<u64> = (0..len).collect();
            assert_eq!(fold(&x, 0, |a, v| a + v, |a, b| a + b), x.iter().sum::<u64>(), "{len} elements");
        }
    }
}
