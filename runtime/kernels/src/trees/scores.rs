//! The scores and classes of rows, from the sums of their leaves.

use std::f64::consts::{PI, SQRT_2};

use super::forest::{LeafSum, Threshold};

/// How the sums of a row become its scores and its class.
#[derive(Debug, Clone)]
pub struct Scoring {
    /// The divisor of each sum: 1, or the number of trees.
    pub divisor: f64,
    /// The numbers that are added to the sums of the first targets. Without [`ClassRule::Largest`], a sum without any weight
    /// stays 0.
    pub base: Vec<f64>,
    /// The function of the scores.
    pub link: Link,
    /// The rule for the class; `None` if there are no classes.
    pub rule: Option<ClassRule>,
}

/// A function of the scores of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The scores themselves.
    None,
    /// `1 / (1 + e⁻ˣ)`.
    Logistic,
    /// `eˣ / Σ eˣ`.
    Softmax,
    /// As `Softmax`, but a score of 0 stays 0 and does not count in the sum.
    SoftmaxZero,
    /// `√2 · erf⁻¹(2x − 1)`, by Winitzki's approximation of erf⁻¹.
    Probit,
}

/// How the class of a row follows from its scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassRule {
    /// The first class with the largest score, among those that have a score.
    Largest,
    /// Two classes with one score, which is a probability: class 1 if it is above 0.5.
    Probability,
    /// Two classes with one score: class 1 if it is above 0.
    Margin,
    /// Two classes: class 1 if its score is above 0, or if it has none and that of class 0 is above 0.
    Positive,
}

impl Scoring {
    /// Writes the scores of all rows, and their classes, from the sums `[rows, targets]`, which it changes.
    pub(super) fn all<T: Threshold>(
        &self,
        targets: usize,
        sums: &mut [LeafSum],
        scores: &mut [T],
        classes: &mut [i64],
    ) {
        let mut classes = classes.iter_mut();
        for (sums, scores) in sums.chunks_exact_mut(targets).zip(scores.chunks_exact_mut(targets)) {
            let class = self.row::<T>(sums);
            for (score, sum) in scores.iter_mut().zip(sums) {
                *score = T::rounded(sum.value);
            }
            if let Some(to) = classes.next() {
                *to = class;
            }
        }
    }

    /// Turns the sums of a row into scores, and returns its class.
    fn row<T: Threshold>(&self, sums: &mut [LeafSum]) -> i64 {
        for (i, sum) in sums.iter_mut().enumerate() {
            let base = self.base.get(i).filter(|_| sum.is_any || self.rule == Some(ClassRule::Largest));
            sum.value = T::rounded(sum.value / self.divisor + base.unwrap_or(&0.0)).into();
        }
        let class = match (self.rule, &mut *sums) {
            (Some(ClassRule::Probability | ClassRule::Margin | ClassRule::Positive), [first, second]) => {
                let score = if second.is_any { second.value } else { first.value };
                if !second.is_any && self.base.len() < 2 {
                    [first.value, second.value] = self.both(score);
                    return i64::from(self.is_second(score));
                }
                i64::from(self.is_second(score))
            }
            (Some(_), sums) => largest(sums, !self.base.is_empty()),
            (None, _) => 0,
        };
        self.link.apply(sums);
        class
    }

    /// Whether a row with this score is of class 1.
    fn is_second(&self, score: f64) -> bool {
        score > if self.rule == Some(ClassRule::Probability) { 0.5 } else { 0.0 }
    }

    /// Returns the scores of two classes from the only score.
    fn both(&self, score: f64) -> [f64; 2] {
        match (self.rule, self.link) {
            (_, Link::Logistic) => [logistic(-score), logistic(score)],
            (Some(ClassRule::Probability), _) => [1.0 - score, score],
            _ => [-score, score],
        }
    }
}

/// The first target with the largest sum; of those with weights, unless all count.
fn largest(sums: &[LeafSum], all: bool) -> i64 {
    let mut best: Option<(usize, f64)> = None;
    for (i, sum) in sums.iter().enumerate().filter(|(_, sum)| all || sum.is_any) {
        if best.is_none_or(|(_, value)| sum.value > value) {
            best = Some((i, sum.value));
        }
    }
    best.map_or(0, |(i, _)| i as i64)
}

impl Link {
    pub(super) fn apply(self, sums: &mut [LeafSum]) {
        match self {
            Link::None => {}
            Link::Logistic => each(sums, logistic),
            Link::Probit => each(sums, probit),
            Link::Softmax | Link::SoftmaxZero => softmax(sums, self == Link::SoftmaxZero),
        }
    }
}

fn each(sums: &mut [LeafSum], function: impl Fn(f64) -> f64) {
    sums.iter_mut().for_each(|sum| sum.value = function(sum.value));
}

/// `eˣ / Σ eˣ`; with `keeps_zeros`, a number of at most 10⁻⁷ is multiplied by `e⁻ᵐ / Σ eˣ` instead, for the largest number m.
fn softmax(sums: &mut [LeafSum], keeps_zeros: bool) {
    let most = sums.iter().fold(f64::NEG_INFINITY, |most, sum| most.max(sum.value));
    let counts = |x: f64| !keeps_zeros || x.abs() > 1e-7;
    let total: f64 = sums.iter().filter(|sum| counts(sum.value)).map(|sum| (sum.value - most).exp()).sum();
    each(sums, |x| if counts(x) { (x - most).exp() } else { x * (-most).exp() });
    each(sums, |x| x / total);
}

fn logistic(x: f64) -> f64 {
    let of_magnitude = 1.0 / (1.0 + (-x.abs()).exp());
    if x < 0.0 {
        1.0 - of_magnitude
    } else {
        of_magnitude
    }
}

/// Source: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
fn probit(x: f64) -> f64 {
    const A: f64 = 0.147;
    let x = 2.0 * x - 1.0;
    let log = ((1.0 - x) * (1.0 + x)).ln();
    let half = 2.0 / (PI * A) + 0.5 * log;
    let root = ((half * half - log / A).sqrt() - half).sqrt();
    SQRT_2 * if x < 0.0 { -root } else { root }
}
