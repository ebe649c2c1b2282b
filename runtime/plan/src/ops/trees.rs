//! Ensembles of decision trees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::error::Result;
use crate::operator::{Arity, Operator};
use crate::types::{Dim, Shape, TensorType, Type, Types};

/// `scores [N, targets]`: for each row of `X [N, F]`, the weights of the leaves that the row reaches, added up by target,
/// plus the base; with `classes`, also `class: int64 [N]`, the index of the row's class.
///
/// Inputs:
/// - `X`, of float32 or float64
/// - `nodes: int32 [M, 4]`, rows of `feature, missing, yes, no`: if `X[feature] ≤ threshold`, the row goes on at node `yes`,
///   otherwise at node `no`; a NaN goes to `yes` if `missing` is 1. Both nodes come later. At a leaf, the feature is −1, and
///   `yes` and `no` are the first of its weights and the end of them.
/// - `thresholds [M]` of X's dtype
/// - `roots: int32 [trees]`, the nodes where rows begin
/// - `targets: int32 [W]` and `weights [W]` of X's dtype, of the leaves; with one target, each leaf has one weight
/// - `base [B]` of X's dtype: the base of the first B targets. A score without any weight stays 0, unless `classes` is
///   `largest`.
///
/// The sums are float64, rounded once. Their order depends on nothing but the number of trees. Source:
/// [ONNX TreeEnsemble](https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeEnsemble {
    /// The number of targets or classes.
    pub targets: usize,
    /// How the weights of a target are joined.
    pub aggregate: Aggregate,
    /// The function of the scores of a row.
    pub transform: ScoreTransform,
    /// How the class of a row follows from its scores; absent: there are no classes.
    pub classes: Option<Classes>,
}

/// How the weights of a target are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// Their sum divided by the number of trees.
    Average,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// A function of the scores of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreTransform {
    /// The scores themselves.
    None,
    /// `1 / (1 + e⁻ˣ)`.
    Logistic,
    /// `eˣ / Σ eˣ`.
    Softmax,
    /// As `softmax`, but a score of 0 stays 0 and does not count in the sum.
    SoftmaxZero,
    /// `√2 · erf⁻¹(2x − 1)`, by Winitzki's approximation of erf⁻¹.
    Probit,
}

/// How the class of a row follows from its scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Classes {
    /// The first class with the largest score, among those that have a score.
    Largest,
    /// Two classes, and all weights have the same target. They are not negative: class 1 has a score above 0.5.
    Probability,
    /// Two classes, and all weights have the same target: class 1 has a score above 0.
    Margin,
    /// Two classes: class 1 if its score is above 0, or if it has none and that of class 0 is above 0.
    Positive,
}

/// The columns of `nodes`.
const COLUMNS: usize = 4;

impl Operator for TreeEnsemble {
    fn arity(&self) -> Arity {
        Arity { inputs: 7..=7, outputs: 1..=2 }
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let x = inputs.tensor(0)?;
        require_dtype("X", x.dtype, &[DType::Float32, DType::Float64])?;
        for (input, name) in [(2, "thresholds"), (5, "weights"), (6, "base")] {
            require_dtype(name, inputs.tensor(input)?.dtype, &[x.dtype])?;
        }
        for (input, name) in [(1, "nodes"), (3, "roots"), (4, "targets")] {
            require_dtype(name, inputs.tensor(input)?.dtype, &[DType::Int32])?;
        }
        if x.rank().is_some_and(|rank| rank != 2) {
            bail!("a matrix of rows is needed, found {}", inputs.get(0)?);
        }
        if inputs.outputs > 1 && self.classes.is_none() {
            bail!("without classes, there is one output");
        }
        if let Some(nodes) = inputs.checked(1) {
            let features = features(nodes)?;
            self.check_features(features, x.size(1))?;
        }
        let rows = x.shape.as_ref().map(|shape| shape[0].clone());
        let shape = |of: &[usize]| -> Option<Shape> {
            let rest = of.iter().map(|&size| Some(Dim::Size(size)));
            rows.clone().map(|rows| [rows].into_iter().chain(rest).collect())
        };
        let scores = TensorType { dtype: x.dtype, shape: shape(&[self.targets]) };
        let classes = TensorType { dtype: DType::Int64, shape: shape(&[]) };
        Ok([scores, classes].map(Type::Tensor).into_iter().take(inputs.outputs).collect())
    }

    fn checks(&self, input: usize) -> bool {
        input == 1
    }
}

impl TreeEnsemble {
    /// Checks that rows of `columns` elements have all the features that the nodes read.
    pub(crate) fn check_features(&self, features: usize, columns: Option<usize>) -> Result<()> {
        match columns {
            Some(columns) if columns < features => {
                bail!("a node reads feature {}, and X has {columns} columns", features - 1)
            }
            _ => Ok(()),
        }
    }
}

/// The number of features that the nodes read.
fn features(nodes: &Array) -> Result<usize> {
    let last = nodes.read::<i32>()?.chunks_exact(COLUMNS).map(|node| node[0]).max().unwrap_or(-1);
    Ok(usize::try_from(i64::from(last) + 1).unwrap_or_default())
}
