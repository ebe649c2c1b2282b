//! The products that the forms make of a tile, and the transformed weights in their order.

use super::super::BLOCK;

/// The products of one form.
#[derive(Clone, Copy)]
pub(in crate::blocked) struct Products {
    /// Of a tile.
    pub positions: usize,
    /// The parts of a window whose products are added up.
    pub pieces: usize,
}

impl Products {
    /// Those of one output and channel.
    pub fn count(self) -> usize {
        self.positions * self.pieces
    }

    /// The terms of a sum, as channel and piece, in order: whole blocks of channels first.
    fn terms(self, channels: usize) -> impl Iterator<Item = (usize, usize)> {
        let whole = channels - channels % BLOCK;
        let of = move |range: std::ops::Range<usize>| {
            (0..self.pieces).flat_map(move |piece| range.clone().map(move |c| (c, piece)))
        };
        of(0..whole).chain(of(whole..channels))
    }

    /// Appends the weights of a span of outputs, `[position][term][outputs of the span]`, from those of each output and
    /// channel, `[piece][position]`; outputs beyond the last have zeros.
    pub fn pack(self, outputs: usize, channels: usize, transformed: &[f32], packed: &mut Vec<f32>) {
        for position in 0..self.positions {
            for (c, piece) in self.terms(channels) {
                let at = |o: usize| ((o * channels + c) * self.pieces + piece) * self.positions + position;
                packed.extend((0..outputs).map(|o| transformed.get(at(o)).copied().unwrap_or(0.0)));
            }
        }
    }
}
