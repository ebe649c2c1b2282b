//! Lines of elements, and the threads that work on a line together.

use bytemuck::{Pod, Zeroable};
use candle_plan_device::{Grid, BLOCK};

use super::launch::count;
use crate::error::Result;

/// The twin of `Teams`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Teams {
    size: u32,
    adjacent: u32,
}

/// The twin of `Lines`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Lines {
    teams: Teams,
    count: u32,
    n: u32,
    inner: u32,
}

impl Teams {
    /// For lines of `n` elements that are neighbors.
    pub fn along(n: u32) -> Teams {
        /// Elements for a thread, so that joining what threads found does not take longer than finding it.
        const FEW: u32 = 4;
        Teams { size: n.div_ceil(FEW).next_power_of_two().min(BLOCK), adjacent: 1 }
    }

    /// For `lines` lines of `n` elements each, which lie side by side.
    pub fn across(n: u32, lines: u32) -> Teams {
        const FEW: u32 = 8;
        /// Neighbors that are read together.
        const WARP: u32 = 32;
        let most = BLOCK / lines.clamp(1, WARP).next_power_of_two();
        Teams { size: n.div_ceil(FEW).next_power_of_two().min(most), adjacent: 0 }
    }

    /// The threads of a team.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The blocks that have a team for each of `lines` lines.
    pub fn blocks(&self, lines: u32) -> u32 {
        lines.div_ceil(BLOCK / self.size)
    }
}

impl Lines {
    /// The lines along the middle axis of `[outer, n, inner]`.
    ///
    /// # Errors
    /// There are more elements than kernels count.
    pub fn new([outer, n, inner]: [usize; 3]) -> Result<Lines> {
        count(outer.saturating_mul(n).saturating_mul(inner))?;
        let (lines, n, inner) = (count(outer.saturating_mul(inner))?, count(n)?, count(inner)?);
        let teams = if inner == 1 { Teams::along(n) } else { Teams::across(n, lines) };
        Ok(Lines { teams, count: lines, n, inner })
    }

    /// A team for each.
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
