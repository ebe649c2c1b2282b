//! Operators of support vector machines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bail;
use crate::dtype::{require_dtype, DType};
use crate::error::Result;
use crate::extent::{fits, Extent};
use crate::operator::{Arity, Operator};
use crate::types::{Dim, TensorType, Type, Types};
use crate::work::Work;

/// `D[n, m] = Σₖ (X[n, k] − P[m, k])²`, for `X [N, K]` and `P [M, K]` of float32.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SquaredDistances {}

impl SquaredDistances {
    /// The sizes N and M.
    ///
    /// # Errors
    /// The inputs are no matrices of equally many columns.
    pub(crate) fn sizes<E: Extent + Clone>(x: &[E], points: &[E]) -> Result<[E; 2]> {
        match (x, points) {
            ([rows, k], [count, size]) if fits(k, size) => Ok([rows.clone(), count.clone()]),
            _ => bail!("two matrices of equally many columns are needed"),
        }
    }
}

impl Operator for SquaredDistances {
    fn arity(&self) -> Arity {
        Arity::exact(2, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let (x, points) = (inputs.tensor(0)?, inputs.tensor(1)?);
        require_dtype("X", x.dtype, &[DType::Float32])?;
        require_dtype("P", points.dtype, &[DType::Float32])?;
        let shape = match (&x.shape, &points.shape) {
            (Some(x), Some(points)) => SquaredDistances::sizes(x, points)?.to_vec(),
            _ => vec![None; 2],
        };
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Float32, shape: Some(shape) })])
    }

    fn work(&self, inputs: &Types, outputs: &[Type]) -> Option<Work> {
        let sizes = outputs.first()?.tensor().ok()?.sizes()?;
        let products = sizes.iter().chain([&inputs.tensor(0).ok()?.size(1)?]).map(|&size| size as u64).product();
        Work::multiplying(inputs, outputs, Some(products))
    }
}

/// The probabilities `Y [N, classes]` of classes, given that one of two classes is right: `R [N, P]`, for the pairs (0, 1),
/// (0, 2) …, (1, 2) …, is the probability of the first one of the pair. float32.
///
/// The probabilities are those of LIBSVM: it stops when the error is below 0.005 / classes, after at most 100 rounds. Source:
/// T.-F. Wu, C.-J. Lin, R. C. Weng,
/// [Probability estimates for multi-class classification by pairwise coupling](https://www.csie.ntu.edu.tw/~cjlin/papers/svmprob/svmprob.pdf),
/// algorithm 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairwiseCoupling {
    /// The number of classes.
    pub classes: usize,
}

impl PairwiseCoupling {
    /// Checks that there is a column for each pair of classes.
    pub(crate) fn check_pairs(&self, r: &[impl Extent]) -> Result<()> {
        let pairs = self.classes.checked_mul(self.classes.saturating_sub(1)).map(|pairs| pairs / 2);
        match r {
            [_, columns] if pairs.is_some() && columns.known().is_none_or(|known| Some(known) == pairs) => Ok(()),
            _ => bail!("a column is needed for each pair of {} classes", self.classes),
        }
    }
}

impl Operator for PairwiseCoupling {
    fn arity(&self) -> Arity {
        Arity::exact(1, 1)
    }

    fn infer(&self, inputs: &Types) -> Result<Vec<Type>> {
        let r = inputs.tensor(0)?;
        require_dtype("R", r.dtype, &[DType::Float32])?;
        let rows = match &r.shape {
            Some(shape) => {
                self.check_pairs(shape)?;
                shape[0].clone()
            }
            None => None,
        };
        let shape = Some(vec![rows, Some(Dim::Size(self.classes))]);
        Ok(vec![Type::Tensor(TensorType { dtype: DType::Float32, shape })])
    }
}
