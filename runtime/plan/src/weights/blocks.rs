//! The blocks of quantized numbers in GGUF files, as codes with a scale and a minimum for each part of a block.
//!
//! Source: the [block formats of ggml](https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h).

use candle_core::quantized::GgmlDType;
use half::f16;

/// The most elements of a block.
const LARGEST: usize = 256;
/// The fewest elements of a part.
const SMALLEST_PART: usize = 16;

/// A type of blocks. An element is `code · scale − minimum`, or `(code − 2^(bits − 1)) · scale` in a type without minima.
pub struct Format {
    /// The elements of a block.
    pub elements: usize,
    /// The bytes of a block in the file.
    pub bytes: usize,
    /// The elements of a part, which share a scale and a minimum.
    pub part: usize,
    /// The bits of a code here: 4 or 8. Codes of 5 and 6 bits have 8.
    pub bits: usize,
    pub has_minima: bool,
    read: fn(&[u8], &mut Codes),
}

/// The elements of a block. Its parts have the first scales and minima.
pub struct Codes {
    pub codes: [u8; LARGEST],
    pub scales: [f32; LARGEST / SMALLEST_PART],
    pub minima: [f32; LARGEST / SMALLEST_PART],
}

impl Format {
    /// The format of a type; `None` if its elements are no codes of at most 8 bits, or no product reads such blocks.
    pub fn of(kind: GgmlDType) -> Option<Format> {
        let plain = |bytes, bits, has_minima, read| Format { elements: 32, bytes, part: 32, bits, has_minima, read };
        let large = |bytes, part, bits, has_minima, read| Format { elements: 256, bytes, part, bits, has_minima, read };
        Some(match kind {
            GgmlDType::Q4_0 => plain(18, 4, false, q4_0),
            GgmlDType::Q4_1 => plain(20, 4, true, q4_1),
            GgmlDType::Q5_0 => plain(22, 8, false, q5_0),
            GgmlDType::Q5_1 => plain(24, 8, true, q5_1),
            GgmlDType::Q8_0 => plain(34, 8, false, q8_0),
            GgmlDType::Q4K => large(144, 32, 4, true, q4_k),
            GgmlDType::Q5K => large(176, 32, 8, true, q5_k),
            GgmlDType::Q6K => large(210, 16, 8, false, q6_k),
            _ => return None,
        })
    }

    /// Reads a block of [`bytes`](Format::bytes).
    pub fn read(&self, block: &[u8], codes: &mut Codes) {
        (self.read)(block, codes);
    }
}

impl Codes {
    pub fn new() -> Codes {
        Codes { codes: [0; LARGEST], scales: [0.0; LARGEST / SMALLEST_PART], minima: [0.0; LARGEST / SMALLEST_PART] }
    }
}

/// The float16 at a place of a block.
fn number(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The codes of 4 bits in 16 bytes: the low bits hold the first half of the codes.
fn halves(bytes: &[u8], codes: &mut [u8]) {
    let (low, high) = codes.split_at_mut(bytes.len());
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

fn q4_0(block: &[u8], found: &mut Codes) {
    found.scales[0] = number(block, 0);
    halves(&block[2..18], &mut found.codes[..32]);
}

fn q4_1(block: &[u8], found: &mut Codes) {
    (found.scales[0], found.minima[0]) = (number(block, 0), -number(block, 2));
    halves(&block[4..20], &mut found.codes[..32]);
}

/// Codes of 5 bits: 4 bytes with the fifth bit of each code, and 16 bytes with the others.
fn fives(bytes: &[u8], codes: &mut [u8]) {
    let fifths = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    halves(&bytes[4..20], codes);
    for (at, code) in codes.iter_mut().enumerate() {
        *code |= (fifths >> at & 1) as u8 * 16;
    }
}

fn q5_0(block: &[u8], found: &mut Codes) {
    found.scales[0] = number(block, 0);
    fives(&block[2..22], &mut found.codes[..32]);
    found.codes[..32].iter_mut().for_each(|code| *code += 128 - 16);
}

fn q5_1(block: &[u8], found: &mut Codes) {
    (found.scales[0], found.minima[0]) = (number(block, 0), -number(block, 2));
    fives(&block[4..24], &mut found.codes[..32]);
}

fn q8_0(block: &[u8], found: &mut Codes) {
    found.scales[0] = number(block, 0);
    for (code, byte) in found.codes.iter_mut().zip(&block[2..34]) {
        *code = byte ^ 0x80;
    }
}

/// The scales and minima of 8 parts: two float16 times integers of 6 bits, which share 12 bytes.
fn scales(block: &[u8], found: &mut Codes) {
    let (scale, minimum, packed) = (number(block, 0), number(block, 2), &block[4..16]);
    for part in 0..8 {
        let (a, b) = match part {
            0..4 => (packed[part] & 63, packed[part + 4] & 63),
            _ => (packed[part + 4] & 15 | packed[part - 4] >> 6 << 4, packed[part + 4] >> 4 | packed[part] >> 6 << 4),
        };
        (found.scales[part], found.minima[part]) = (scale * f32::from(a), minimum * f32::from(b));
    }
}

/// Codes of 4 bits: the low bits of 32 bytes hold one part, and the high bits the next one.
fn pairs(bytes: &[u8], codes: &mut [u8]) {
    bytes.chunks(32).zip(codes.chunks_mut(64)).for_each(|(bytes, codes)| halves(bytes, codes));
}

fn q4_k(block: &[u8], found: &mut Codes) {
    scales(block, found);
    pairs(&block[16..144], &mut found.codes);
}

fn q5_k(block: &[u8], found: &mut Codes) {
    scales(block, found);
    pairs(&block[48..176], &mut found.codes);
    for (part, codes) in found.codes.chunks_mut(32).enumerate() {
        codes.iter_mut().zip(&block[16..48]).for_each(|(code, fifths)| *code |= (fifths >> part & 1) * 16);
    }
}

/// Codes of 6 bits. In each half of the block, a byte holds the upper 2 bits of codes that are 32 apart.
fn q6_k(block: &[u8], found: &mut Codes) {
    let (low, upper) = (&block[..128], &block[128..192]);
    for (half, codes) in found.codes.chunks_mut(128).enumerate() {
        for (at, code) in codes.iter_mut().enumerate() {
            let (quarter, lane) = (at / 32, at % 32);
            let four = low[64 * half + 32 * (quarter % 2) + lane] >> (4 * (quarter / 2)) & 15;
            let two = upper[32 * half + lane] >> (2 * quarter) & 3;
            *code = (four | two << 4) + (128 - 32);
        }
    }
    let scale = number(block, 208);
    for (part, byte) in block[192..208].iter().enumerate() {
        found.scales[part] = scale * f32::from(*byte as i8);
    }
}
