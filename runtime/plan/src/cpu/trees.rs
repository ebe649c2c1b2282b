//! CPU kernels: ensembles of decision trees.

use candle_plan_kernels::trees::{ClassRule, Forest, Joining, Link, Scoring, Threshold, TreeNode};

use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::array::Array;
use crate::bail;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::form::KernelForm;
use crate::kernel::{Call, Kernel};
use crate::ops::trees::{Aggregate, Classes, ScoreTransform, TreeEnsemble};
use crate::types::Types;
use crate::value::{alloc_uninit, list, try_list, with_capacity, Value};

/// Nodes, and where the weights of each begin and end.
type Nodes<T> = (Vec<TreeNode<T>>, Vec<[u32; 2]>);

/// The trees for the dtype of the rows, and the base.
pub(super) enum PackedForest {
    Single(Forest<f32>, Vec<f64>),
    Double(Forest<f64>, Vec<f64>),
}

impl HasKernel for TreeEnsemble {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let arrays: [_; 6] = std::array::from_fn(|i| operands.constants.tensor(i + 1));
        let packed = match arrays {
            [Some(nodes), Some(thresholds), Some(roots), Some(targets), Some(weights), Some(base)] => {
                Some(self.packed([nodes, thresholds, roots, targets, weights, base])?)
            }
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<TreeEnsemble, Option<PackedForest>> {
    fn is_replaced(&self, input: usize) -> bool {
        self.packed.is_some() && input > 0
    }

    fn form(&self) -> KernelForm {
        KernelForm::of(self.packed.as_ref(), |packed| {
            let (trees, bytes) = match packed {
                PackedForest::Single(forest, _) => (forest.roots.len(), forest.bytes()),
                PackedForest::Double(forest, _) => (forest.roots.len(), forest.bytes()),
            };
            KernelForm::named(format!("{trees} trees")).packed(bytes)
        })
    }

    fn scratch(&self, inputs: &Types) -> Option<usize> {
        let rows = *inputs.sizes(0).ok()??.first()?;
        Some(match self.packed.as_ref()? {
            PackedForest::Single(forest, _) => forest.scratch(rows),
            PackedForest::Double(forest, _) => forest.scratch(rows),
        })
    }

    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let made;
        let packed = match self.packed.as_ref() {
            Some(packed) => packed,
            None => {
                let array = |i| call.tensor(i);
                made = self.op.packed([array(1)?, array(2)?, array(3)?, array(4)?, array(5)?, array(6)?])?;
                &made
            }
        };
        match packed {
            PackedForest::Single(forest, base) => self.op.compute(forest, base, call),
            PackedForest::Double(forest, base) => self.op.compute(forest, base, call),
        }
    }
}

impl TreeEnsemble {
    fn packed(&self, arrays: [&Array; 6]) -> Result<PackedForest> {
        let [.., base] = arrays;
        Ok(match arrays[1].dtype() {
            DType::Float64 => PackedForest::Double(self.forest(arrays)?, self.base::<f64>(base)?),
            _ => PackedForest::Single(self.forest(arrays)?, self.base::<f32>(base)?),
        })
    }

    fn base<T: Element + Threshold>(&self, base: &Array) -> Result<Vec<f64>> {
        if base.len() > self.targets {
            bail!("{} numbers in the base of {} targets", base.len(), self.targets);
        }
        list(base.read::<T>()?.iter().map(|&x| x.into()))
    }

    /// Checks and packs the trees.
    fn forest<T: Element + Threshold>(&self, arrays: [&Array; 6]) -> Result<Forest<T>> {
        let [nodes, thresholds, roots, targets, weights, _] = arrays;
        let (nodes, []) = nodes.read::<i32>()?.as_chunks::<4>() else { bail!("a node has four numbers") };
        let (thresholds, targets, weights) = (thresholds.read::<T>()?, targets.read::<i32>()?, weights.read::<T>()?);
        if thresholds.len() != nodes.len() || targets.len() != weights.len() {
            let [thresholds, targets, weights] = [thresholds.len(), targets.len(), weights.len()];
            bail!("{thresholds} thresholds of {} nodes, {targets} targets of {weights} weights", nodes.len());
        }
        if !self.takes_classes() {
            bail!("{:?} does not fit {} targets", self.classes, self.targets);
        }
        let is_one = self.targets == 1;
        let (packed, spans) = packed_nodes(nodes, thresholds, weights, is_one)?;
        let listed = try_list(
            targets
                .iter()
                .zip(weights)
                .map(|(&target, &weight)| below(target, self.targets, "target").map(|target| (target, weight))),
        )?;
        let last = nodes.iter().map(|node| node[0]).max().unwrap_or(-1);
        Ok(Forest {
            nodes: packed,
            roots: try_list(roots.read::<i32>()?.iter().map(|&root| below(root, nodes.len(), "root")))?,
            spans,
            weights: if is_one { Vec::new() } else { listed },
            targets: self.targets,
            features: usize::try_from(i64::from(last) + 1).unwrap_or_default(),
            has_missing: nodes.iter().any(|node| node[1] == 1),
            join: match self.aggregate {
                Aggregate::Sum | Aggregate::Average => Joining::Add,
                Aggregate::Min => Joining::Min,
                Aggregate::Max => Joining::Max,
            },
        })
    }

    /// Whether the classes fit the number of targets.
    fn takes_classes(&self) -> bool {
        match self.classes {
            None => self.targets > 0,
            Some(Classes::Largest) => self.targets > 1,
            Some(_) => self.targets == 2,
        }
    }

    fn compute<T: Element + Threshold>(&self, forest: &Forest<T>, base: &[f64], call: &Call) -> Result<Vec<Value>> {
        let x = call.tensor(0)?;
        let &[rows, columns] = x.dims() else { bail!("a matrix of rows is needed, found {:?}", x.dims()) };
        self.check_features(forest.features, Some(columns))?;
        let scoring = self.scoring(forest.roots.len(), base);
        let data = x.read::<T>()?;
        let dims = [rows, self.targets];
        let scores = alloc_uninit::<T>(&dims)?;
        if call.outputs < 2 || self.classes.is_none() {
            let scores = scores.overwrite(|scores| forest.run(call.threads, data, columns, &scoring, scores, &mut []));
            return Ok(vec![Array::new(scores, &dims)?.into()]);
        }
        let classes = alloc_uninit::<i64>(&[rows])?;
        let run = |scores: &mut [T], classes: &mut [i64]| {
            forest.run(call.threads, data, columns, &scoring, scores, classes);
        };
        let (scores, classes) = scores.overwrite_both(classes, run);
        Ok(vec![Array::new(scores, &dims)?.into(), Array::new(classes, &[rows])?.into()])
    }

    fn scoring(&self, trees: usize, base: &[f64]) -> Scoring {
        Scoring {
            divisor: if self.aggregate == Aggregate::Average { trees as f64 } else { 1.0 },
            base: base.to_vec(),
            link: match self.transform {
                ScoreTransform::None => Link::None,
                ScoreTransform::Logistic => Link::Logistic,
                ScoreTransform::Softmax => Link::Softmax,
                ScoreTransform::SoftmaxZero => Link::SoftmaxZero,
                ScoreTransform::Probit => Link::Probit,
            },
            rule: self.classes.map(|classes| match classes {
                Classes::Largest => ClassRule::Largest,
                Classes::Probability => ClassRule::Probability,
                Classes::Margin => ClassRule::Margin,
                Classes::Positive => ClassRule::Positive,
            }),
        }
    }
}

/// The nodes with their thresholds, and with several targets, the weights of each node. With one target, a leaf has its weight
/// in the place of the threshold.
fn packed_nodes<T: Copy>(nodes: &[[i32; 4]], thresholds: &[T], weights: &[T], is_one: bool) -> Result<Nodes<T>> {
    let mut spans = with_capacity(if is_one { 0 } else { nodes.len() })?;
    let mut packed = with_capacity(nodes.len())?;
    for (i, (node, &threshold)) in nodes.iter().zip(thresholds).enumerate() {
        let (mut made, span) = node_of(i, *node, threshold, [nodes.len(), weights.len()])
            .ok_or_else(|| Error::op(format!("node {i} is {node:?}, of {} nodes", nodes.len())))?;
        match span {
            Some([first, end]) if is_one && end - first != 1 => bail!("leaf {i} has {} weights", end - first),
            Some([first, _]) if is_one => made.threshold = weights[first as usize],
            _ if is_one => {}
            span => spans.push(span.unwrap_or_default()),
        }
        packed.push(made);
    }
    Ok((packed, spans))
}

/// Node `i` of `nodes`, and where its weights begin and end, if it is a leaf. `None` if it is not valid: its children come
/// later, so that every walk ends.
fn node_of<T>(i: usize, node: [i32; 4], threshold: T, sizes: [usize; 2]) -> Option<(TreeNode<T>, Option<[u32; 2]>)> {
    let [feature, missing, yes, no] = node;
    let [yes, no] = [u32::try_from(yes).ok()?, u32::try_from(no).ok()?];
    let [nodes, weights] = sizes;
    if feature == -1 {
        let at = u32::try_from(i).ok()?;
        let is_span = yes <= no && no as usize <= weights;
        return is_span.then_some((TreeNode { threshold, feature: 0, next: [at; 2] }, Some([yes, no])));
    }
    let is_inside = [yes, no].iter().all(|&child| (i + 1..nodes).contains(&(child as usize)));
    let feature = 2 * u32::try_from(feature).ok()? + u32::from(missing == 1);
    (is_inside && [0, 1].contains(&missing)).then_some((TreeNode { threshold, feature, next: [no, yes] }, None))
}

/// Returns an index below `count`.
///
/// # Errors
/// The number is negative, or not below `count`.
fn below(number: i32, count: usize, name: &str) -> Result<u32> {
    match u32::try_from(number) {
        Ok(number) if (number as usize) < count => Ok(number),
        _ => bail!("{name} {number} of {count}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_outputs, tensor};

    fn one_tree(nodes: &[i32], targets: &[i32], op: &TreeEnsemble) -> Result<Vec<Value>> {
        let thresholds = vec![0.5f64; nodes.len() / 4];
        let weights: Vec<f64> = (1..=targets.len()).map(|i| i as f64).collect();
        let inputs = [
            tensor(&[0.5f64, f64::NAN, 1.0], &[3, 1]),
            tensor(nodes, &[nodes.len() / 4, 4]),
            tensor(&thresholds, &[thresholds.len()]),
            tensor(&[0i32], &[1]),
            tensor(targets, &[targets.len()]),
            tensor(&weights, &[weights.len()]),
            tensor::<f64>(&[], &[0]),
        ];
        run_outputs(op, &inputs.map(Some), if op.classes.is_some() { 2 } else { 1 })
    }

    fn op(targets: usize, classes: Option<Classes>) -> TreeEnsemble {
        TreeEnsemble { targets, aggregate: Aggregate::Average, transform: ScoreTransform::None, classes }
    }

    #[test]
    fn rows_reach_leaves() {
        for (missing, of_nan) in [(0, 2.0), (1, 1.0)] {
            let y = one_tree(&[0, missing, 1, 2, -1, 0, 0, 1, -1, 0, 1, 2], &[0, 0], &op(1, None)).expect("a tree");
            assert_eq!(y[0].tensor().and_then(|y| y.read::<f64>()).expect("scores"), [1.0, of_nan, 2.0]);
        }
        let y = one_tree(&[0, 0, 1, 2, -1, 0, 0, 1, -1, 0, 1, 3], &[0, 1, 2], &op(3, Some(Classes::Largest)));
        let y = y.expect("a tree");
        assert_eq!(y[0].tensor().and_then(|y| y.read::<f64>()).expect("scores"), [1., 0., 0., 0., 2., 3., 0., 2., 3.]);
        assert_eq!(y[1].tensor().and_then(|y| y.to_i64()).expect("classes"), [0, 2, 2]);
    }

    #[test]
    fn broken_trees_are_refused() {
        for (nodes, targets) in [
            (&[0, 0, 0, 1, -1, 0, 0, 1][..], &[0][..]),
            (&[0, 0, 1, 2, -1, 0, 0, 1], &[0]),
            (&[0, 0, -1, 1, -1, 0, 0, 1], &[0]),
            (&[0, 2, 1, 1, -1, 0, 0, 1], &[0]),
            (&[-2, 0, 1, 1, -1, 0, 0, 1], &[0]),
            (&[1, 0, 1, 1, -1, 0, 0, 1], &[0]),
            (&[0, 0, 1, 1, -1, 0, 0, 2], &[0]),
            (&[0, 0, 1, 1, -1, 0, 1, 0], &[0]),
            (&[0, 0, 1, 1, -1, 0, 0, 1], &[1]),
            (&[0, 0, 1, 1, -1, 0, 0, 1], &[-1]),
            (&[], &[]),
        ] {
            assert!(one_tree(nodes, targets, &op(1, None)).is_err(), "{nodes:?} {targets:?}");
        }
        assert!(one_tree(&[-1, 0, 0, 1], &[0], &op(1, None)).is_ok());
        assert!(one_tree(&[-1, 0, 0, 1], &[0], &op(3, Some(Classes::Margin))).is_err());
        assert!(one_tree(&[-1, 0, 0, 1], &[0], &op(0, None)).is_err());
    }
}
