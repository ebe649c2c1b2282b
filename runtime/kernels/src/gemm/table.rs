//! The tables of tiles: as many sums as fit in the registers of an instruction set.

/// A table of `Kernel`s: for each number of rows, the numbers of vectors whose sums fit in registers. `panels` selects
/// only those up to the widest panel.
macro_rules! kernels {
    (avx512 panels $function:ident $T:ident) => {
        kernels!($function [$T]: 1 [1 2 3] 2 [1 2 3] 3 [1 2 3] 4 [1 2 3] 5 [1 2 3] 6 [1 2 3] 7 [1 2 3] 8 [1 2 3])
    };
    (avx512 $function:ident $($T:ident)?) => {
        kernels!($function [$($T)?]: 1 [1 2 3 4 5 6 7 8] 2 [1 2 3 4 5 6 7 8] 3 [1 2 3 4 5 6] 4 [1 2 3 4 5 6]
            5 [1 2 3 4] 6 [1 2 3 4] 7 [1 2 3] 8 [1 2 3])
    };
    (avx2 panels $function:ident $T:ident) => {
        kernels!($function [$T]: 1 [1 2] 2 [1 2] 3 [1 2] 4 [1 2] 5 [1 2] 6 [1 2])
    };
    (avx2 $function:ident $($T:ident)?) => {
        kernels!($function [$($T)?]: 1 [1 2 3 4 5 6] 2 [1 2 3 4] 3 [1 2 3] 4 [1 2] 5 [1 2] 6 [1 2])
    };
    // With six rows of two vectors, the compiler stores some sums to memory in each round.
    (neon panels $function:ident $T:ident) => {
        kernels!($function [$T]: 1 [1 2 3] 2 [1 2 3] 3 [1 2 3] 4 [1 2 3])
    };
    (neon $function:ident $($T:ident)?) => {
        kernels!($function [$($T)?]: 1 [1 2 3 4 5 6] 2 [1 2 3 4] 3 [1 2 3] 4 [1 2 3])
    };
    (scalar $function:ident $($T:ident)?) => {
        kernels!($function [$($T)?]: 1 [1 2 3 4] 2 [1 2 3 4])
    };
    ($function:ident $T:tt: $($rows:literal [$($vectors:literal)*])*) => {
        &[$(&[$(kernels!(@ $function $T $rows $vectors)),*] as &[Kernel]),*]
    };
    (@ $function:ident [$($T:ident)?] $rows:literal $vectors:literal) => {
        $function::<$($T,)? $rows, $vectors> as Kernel
    };
}
pub(super) use kernels;
