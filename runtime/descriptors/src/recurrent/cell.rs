//! The kinds of recurrence.

/// The kind of recurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Gates i, o, f and c.
    Lstm {
        /// Whether `f = 1 − i` (coupled gates).
        input_forget: bool,
    },
    /// Gates z, r and h.
    Gru {
        /// Whether r scales the product with the state, instead of the state.
        linear_before_reset: bool,
    },
    /// One gate.
    Rnn,
}

impl Cell {
    /// The number of gates.
    pub fn gates(self) -> usize {
        match self {
            Cell::Lstm { .. } => 4,
            Cell::Gru { .. } => 3,
            Cell::Rnn => 1,
        }
    }

    /// The number of activation functions: for the gates, for the new state, and for LSTM's c.
    pub fn functions(self) -> usize {
        match self {
            Cell::Lstm { .. } => 3,
            Cell::Gru { .. } => 2,
            Cell::Rnn => 1,
        }
    }

    /// The number of gates whose product with the state depends on another gate.
    pub fn deferred(self) -> usize {
        usize::from(self == Cell::Gru { linear_before_reset: false })
    }
}
