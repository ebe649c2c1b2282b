//! The tiles along one axis of an image.

use std::ops::Range;

/// The tiles of `size` outputs along an axis of `length` outputs. The outputs of a tile have the distance `dilation`.
/// `dilation` interleaved tiles, a group, cover a contiguous run of outputs. Only the last group may be smaller.
#[derive(Debug, Clone, Copy)]
pub(in crate::convolution::blocked) struct Tiling {
    pub size: usize,
    pub length: usize,
    pub dilation: usize,
}

impl Tiling {
    /// The number of tiles that have an output.
    pub fn tiles(&self) -> usize {
        let group = self.size.saturating_mul(self.dilation).max(1);
        self.length / group * self.dilation + (self.length % group).min(self.dilation)
    }

    /// The first output of a tile, if the tiles of a group are adjacent.
    pub fn by_group(&self, tile: usize) -> usize {
        if self.dilation == 1 {
            return tile * self.size;
        }
        tile / self.dilation * self.size * self.dilation + tile % self.dilation
    }

    /// The first output of a tile, if tiles whose outputs are equal modulo the dilation are adjacent. The inputs of these
    /// tiles overlap.
    pub fn by_residue(&self, tile: usize) -> usize {
        if self.dilation == 1 {
            return tile * self.size;
        }
        // The first residues have a tile in the last, smaller group; the other residues do not.
        let (groups, more) = (self.tiles() / self.dilation, self.tiles() % self.dilation);
        let in_more = more * (groups + 1);
        let (residue, group) = match tile.checked_sub(in_more) {
            None => (tile / (groups + 1), tile % (groups + 1)),
            Some(rest) => (more + rest / groups, rest % groups),
        };
        group * self.size * self.dilation + residue
    }

    /// The number of a tile's outputs, from its first one.
    pub fn outputs(&self, first: usize) -> usize {
        (self.length - first).div_ceil(self.dilation).min(self.size)
    }

    /// Calls `run` for runs of outputs, in order, which together are the outputs of some tiles in the order of
    /// [`by_group`](Tiling::by_group).
    pub fn runs(&self, tiles: Range<usize>, mut run: impl FnMut(Range<usize>)) {
        let Tiling { size, length, dilation } = *self;
        for group in tiles.start / dilation..tiles.end.div_ceil(dilation) {
            let first = tiles.start.saturating_sub(group * dilation);
            let end = (tiles.end - group * dilation).min(dilation);
            for i in 0..size {
                let start = (group * size + i) * dilation;
                let [from, to] = [first, end].map(|at| (start + at).min(length));
                if from < to {
                    run(from..to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_output_once() {
        for (size, length, dilation) in [(4, 30, 1), (4, 32, 8), (2, 33, 8), (4, 70, 9), (2, 5, 9), (4, 100, 13)] {
            let tiling = Tiling { size, length, dilation };
            for first in [Tiling::by_group, Tiling::by_residue] {
                let mut found: Vec<usize> = (0..tiling.tiles())
                    .map(|tile| first(&tiling, tile))
                    .flat_map(|first| (0..tiling.outputs(first)).map(move |i| first + i * dilation))
                    .collect();
                found.sort_unstable();
                assert_eq!(found, (0..length).collect::<Vec<_>>(), "{tiling:?}");
            }
        }
    }

    #[test]
    fn runs_cover_the_outputs_of_some_tiles() {
        for (size, length, dilation) in [(4, 30, 1), (2, 33, 8), (4, 70, 9), (2, 5, 9)] {
            let tiling = Tiling { size, length, dilation };
            for start in 0..tiling.tiles() {
                for end in start + 1..=tiling.tiles() {
                    let firsts = (start..end).map(|tile| tiling.by_group(tile));
                    let mut expected: Vec<usize> = firsts
                        .flat_map(|first| (0..tiling.outputs(first)).map(move |i| first + i * dilation))
                        .collect();
                    expected.sort_unstable();
                    let mut found = Vec::new();
                    tiling.runs(start..end, |run| found.extend(run));
                    assert_eq!(found, expected, "{tiling:?} {start}..{end}");
                }
            }
        }
    }
}
