//! Lines of elements, and teams of threads that each process a line.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Grid, Mirror, BLOCK};

use super::launch::count;
use crate::error::Result;

/// How threads form teams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Teams in "team.cuh")]
pub(super) struct Teams {
    size: u32,
    adjacent: u32,
}

/// The lines of a tensor, and the teams that work on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable, Mirror)]
#[repr(C)]
#[kernel(Lines in "team.cuh")]
pub(super) struct Lines {
    teams: Teams,
    count: u32,
    n: u32,
    inner: u32,
}

impl Teams {
    /// Makes teams for lines of `n` contiguous elements.
    pub fn along(n: u32) -> Teams {
        /// Elements per thread, so that combining the results of the threads takes no longer than computing them.
        const FEW: u32 = 4;
        Teams { size: n.div_ceil(FEW).next_power_of_two().min(BLOCK), adjacent: 1 }
    }

    /// Makes teams for `lines` lines of `n` elements each; neighboring elements belong to different lines.
    pub fn across(n: u32, lines: u32) -> Teams {
        const FEW: u32 = 8;
        /// Threads that read neighboring elements together.
        const WARP: u32 = 32;
        let most = BLOCK / lines.clamp(1, WARP).next_power_of_two();
        Teams { size: n.div_ceil(FEW).next_power_of_two().min(most), adjacent: 0 }
    }

    /// Returns the number of threads of a team.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns the number of blocks with one team for each of `lines` lines.
    pub fn blocks(&self, lines: u32) -> u32 {
        lines.div_ceil(BLOCK / self.size)
    }
}

impl Lines {
    /// Describes the lines along the middle axis of `[outer, n, inner]`.
    ///
    /// # Errors
    /// There are more elements than kernels can count.
    pub fn new([outer, n, inner]: [usize; 3]) -> Result<Lines> {
        count(outer.saturating_mul(n).saturating_mul(inner))?;
        let (lines, n, inner) = (count(outer.saturating_mul(inner))?, count(n)?, count(inner)?);
        let teams = if inner == 1 { Teams::along(n) } else { Teams::across(n, lines) };
        Ok(Lines { teams, count: lines, n, inner })
    }

    /// Returns a grid with one team per line.
    pub fn grid(&self) -> Grid {
        Grid::blocks(self.teams.blocks(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_fill_blocks() {
        for n in [0, 1, 3, 64, 1000, 1 << 30] {
            for lines in [0, 1, 5, 40, 1 << 20] {
                for teams in [Teams::along(n), Teams::across(n, lines)] {
                    assert!(teams.size.is_power_of_two() && teams.size <= BLOCK, "{n} {lines} {teams:?}");
                    assert!(u64::from(teams.blocks(lines)) * u64::from(BLOCK / teams.size) >= lines.into());
                }
            }
        }
        assert_eq!(Teams::across(1 << 20, 3).size, 64);
        assert!(Lines::new([1 << 20, 1 << 20, 1]).is_err() && Lines::new([usize::MAX, 2, 2]).is_err());
    }
}
