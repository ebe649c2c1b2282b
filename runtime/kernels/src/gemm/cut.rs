//! The blocks into which the output of a product is cut, for the caches and for the threads.

use std::array::from_fn;

use crate::threads::Threads;

/// The output of a product, and the sizes of its blocks. Each pair holds a number for the rows and one for the panels of
/// columns. Rows may be counted in units of several, which are not cut.
pub(crate) struct Cut {
    /// The rows and panels of the output.
    pub counts: [usize; 2],
    /// The maximum per block.
    pub most: [usize; 2],
    /// The minimum per block where the output is cut for the threads.
    pub least: [usize; 2],
    /// Blocks per thread, if there are several threads, so that others take over work from a delayed thread.
    pub shares: [usize; 2],
    /// Whether the rows are cut for the threads only if there are fewer blocks of panels than threads.
    pub prefers_panels: bool,
}

impl Cut {
    /// Calls `compute(rows, panels)` for every block of an output that is not empty.
    pub fn for_each(&self, threads: &Threads, compute: impl Fn([usize; 2], [usize; 2]) + Sync) {
        let [down, across] = self.blocks(threads.count());
        let [rows, panels] = self.counts;
        threads.for_each(down * across, |task| {
            // Blocks with the same panels are consecutive.
            let (i, j) = (task % down, task / down);
            compute([i, i + 1].map(|i| rows * i / down), [j, j + 1].map(|j| panels * j / across));
        });
    }

    /// The number of blocks along the rows and along the panels.
    fn blocks(&self, threads: usize) -> [usize; 2] {
        let [mut down, mut across] = from_fn(|axis| self.counts[axis].div_ceil(self.most[axis]));
        if threads > 1 {
            let more = |axis: usize, count: usize, other: usize| {
                let most = self.counts[axis].div_ceil(self.least[axis]);
                (self.shares[axis] * threads).div_ceil(other).min(most).max(count)
            };
            across = more(1, across, down);
            if across < threads || !self.prefers_panels {
                down = more(0, down, across);
            }
        }
        [down, across]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn cut(counts: [usize; 2], shares: [usize; 2], prefers_panels: bool) -> Cut {
        Cut { counts, most: [16, 8], least: [2, 2], shares, prefers_panels }
    }

    #[test]
    fn rows_are_cut_for_threads_that_lack_panels() {
        for (counts, threads, prefers_panels, expected) in [
            ([40, 20], 1, false, [3, 3]),
            ([40, 20], 2, false, [3, 3]),
            ([40, 20], 8, false, [4, 10]),
            ([40, 20], 8, true, [3, 10]),
            ([40, 4], 8, true, [16, 2]),
            ([3, 1], 8, true, [2, 1]),
        ] {
            let found = cut(counts, [4, 4], prefers_panels).blocks(threads);
            assert_eq!(found, expected, "{counts:?} {threads} {prefers_panels}");
        }
        assert_eq!(cut([40, 4], [1, 4], true).blocks(8), [4, 2]);
    }

    #[test]
    fn blocks_cover_the_output_once() {
        for (counts, threads) in [([1, 1], 1), ([5, 3], 2), ([33, 7], 3), ([2, 100], 3), ([100, 2], 2)] {
            let seen = Mutex::new(vec![0; counts[0] * counts[1]]);
            cut(counts, [4, 4], false).for_each(&Threads::new(threads).expect("threads"), |rows, panels| {
                let mut seen = seen.lock().expect("no panic");
                for row in rows[0]..rows[1] {
                    seen[row * counts[1]..][panels[0]..panels[1]].iter_mut().for_each(|seen| *seen += 1);
                }
            });
            assert!(seen.into_inner().expect("no panic").iter().all(|&seen| seen == 1), "{counts:?} {threads}");
        }
    }
}
