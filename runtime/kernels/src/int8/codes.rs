//! The 8-bit codes of quantized tensors.

/// Codes of type `i8` or `u8`.
#[derive(Debug, Clone, Copy)]
pub struct Codes<'a> {
    /// The bits of the codes.
    pub bits: &'a [u8],
    /// Whether they are `i8`.
    pub signed: bool,
    /// The code that represents 0.
    pub zero: i32,
}

/// Converts the bits of an `i8` to those of a `u8` that is larger by 128, and back.
pub(super) const SIGN: u8 = 0x80;

/// Whether the difference of every code from `zero` fits in `i8`.
pub(super) fn is_narrow(bits: &[u8], signed: bool, zero: i32) -> bool {
    let (flip, least) = if signed { (SIGN, -128) } else { (0, 0) };
    // Signed codes in the order of `u8`. Two loops without branches compile to vector instructions.
    let low = bits.iter().fold(u8::MAX, |low, &bits| low.min(bits ^ flip));
    let high = bits.iter().fold(0, |high: u8, &bits| high.max(bits ^ flip));
    bits.is_empty() || [low, high].iter().all(|&code| i8::try_from(i32::from(code) + least - zero).is_ok())
}

/// Multiplications that are worth several threads.
pub(super) const SPLIT: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_narrow_if_each_difference_from_the_zero_point_fits() {
        for signed in [false, true] {
            let code = |bits: u8| if signed { i32::from(bits as i8) } else { i32::from(bits) };
            for zero in [-300, -129, -128, -1, 0, 1, 127, 128, 200, 255, 400] {
                for pair in (0..=u8::MAX).map(|first| [first, 77]) {
                    let expected = pair.iter().all(|&bits| (-128..128).contains(&(code(bits) - zero)));
                    assert_eq!(is_narrow(&pair, signed, zero), expected, "{pair:?} {signed} {zero}");
                }
            }
        }
        assert!(is_narrow(&[], true, 1000));
    }
}
