//! The products that are worth several threads.

/// Multiplications that take one thread about 14 µs, if many rows share each number of the right operand.
const MULTIPLICATIONS: usize = 1 << 20;
/// Bytes of a right operand that one thread reads from memory in about 25 µs. A smaller one is often still in the L2 cache,
/// as in models that process one frame per run.
const BYTES: usize = 384 << 10;

/// Whether several threads compute a product. With many rows, its time depends on the multiplications. With few rows, it
/// depends on the bytes of the right operand, and two threads read memory faster than one. To start and to end a job takes
/// up to 2 µs.
pub(crate) fn is_worth_splitting(multiplications: usize, bytes: usize) -> bool {
    multiplications > MULTIPLICATIONS || bytes > BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_multiplications_or_bytes_are_split() {
        for (multiplications, bytes, expected) in [
            (0, 0, false),
            (1 << 20, 384 << 10, false),
            ((1 << 20) + 1, 0, true),
            (0, (384 << 10) + 1, true),
            (usize::MAX, usize::MAX, true),
        ] {
            assert_eq!(is_worth_splitting(multiplications, bytes), expected, "{multiplications} {bytes}");
        }
    }
}
