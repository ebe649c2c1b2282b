//! The sizes of quads, panels and tiles.

/// The numbers of a row or column that an instruction multiplies.
pub const QUAD: usize = 4;
/// The rows or columns that an instruction multiplies, and the numbers of their quads, which fill a register.
pub const PAIR: usize = 2;
pub const REGISTER: usize = PAIR * QUAD;
/// The columns of a panel, and the most rows of a tile: their sums take 24 of the 32 registers.
pub const WIDTH: usize = 8;
pub const ROWS: usize = 12;
