//! The products that a form computes per tile, and the order of the transformed weights.

use super::super::terms::SUMMED;

/// The number of products of a form.
#[derive(Clone, Copy)]
pub(in crate::convolution::blocked) struct Products {
    /// The positions of a transformed tile.
    pub positions: usize,
    /// The parts of a window whose products are added.
    pub pieces: usize,
    /// The terms of a sum that are summed separately: see [`Tile::piece`](super::super::tile::Tile::piece).
    pub summed: usize,
}

impl Products {
    /// The products per output and channel.
    pub fn count(self) -> usize {
        self.positions * self.pieces
    }

    /// The terms of a sum in order, as channel and piece. Whole multiples of [`SUMMED`] channels come first.
    fn terms(self, channels: usize) -> impl Iterator<Item = (usize, usize)> {
        let whole = channels - channels % SUMMED;
        let of = move |range: std::ops::Range<usize>| {
            (0..self.pieces).flat_map(move |piece| range.clone().map(move |c| (c, piece)))
        };
        of(0..whole).chain(of(whole..channels))
    }

    /// Appends the weights of a span of outputs, `[position][term][outputs of the span]`. `transformed` is
    /// `[output][channel][piece][position]`; outputs beyond the last have zero weights.
    pub fn pack(self, outputs: usize, channels: usize, transformed: &[f32], packed: &mut Vec<f32>) {
        for position in 0..self.positions {
            for (c, piece) in self.terms(channels) {
                let at = |o: usize| ((o * channels + c) * self.pieces + piece) * self.positions + position;
                packed.extend((0..outputs).map(|o| transformed.get(at(o)).copied().unwrap_or(0.0)));
            }
        }
    }
}
