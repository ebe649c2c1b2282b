//! A plan as a layer of a Candle model: `cargo run --release -p candle-plan --example module -- features.plan`.

#![forbid(unsafe_code)]

use std::error::Error;

use candle_core::{DType, Device, Module, Tensor};
use candle_nn::{linear, Linear, VarBuilder, VarMap};
use candle_plan::Session;

/// A classifier: a plan computes the features, and a layer of Candle the classes.
pub struct Classifier {
    features: Session,
    head: Linear,
}

impl Classifier {
    /// A classifier with the weights of the head from `weights`, for a plan whose output has `width` features.
    pub fn new(plan: &[u8], width: usize, classes: usize, weights: VarBuilder) -> Result<Self, Box<dyn Error>> {
        let features = Session::from_bytes(plan).candle_device(weights.device()).threads(2).build()?;
        Ok(Classifier { features, head: linear(width, classes, weights.pp("head"))? })
    }
}

impl Module for Classifier {
    fn forward(&self, xs: &Tensor) -> candle_core::Result<Tensor> {
        let logits = self.features.forward(xs)?.apply(&self.head)?;
        candle_nn::ops::softmax_last_dim(&logits)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: module FILE.plan")?;
    print!("{}", run(&std::fs::read(file)?)?);
    Ok(())
}

/// Classifies three rows with a plan `[n, 4] -> [n, 2]` and a new head, and describes the result.
pub fn run(plan: &[u8]) -> Result<String, Box<dyn Error>> {
    let weights = VarMap::new(); // `VarMap::load` reads the weights of a trained head.
    let builder = VarBuilder::from_varmap(&weights, DType::F32, &Device::Cpu);
    let model = Classifier::new(plan, 2, 5, builder)?;
    let rows = Tensor::arange(0f32, 12.0, &Device::Cpu)?.reshape((3, 4))?;
    let classes = model.forward(&rows)?;
    let sums = classes.sum(1)?.to_vec1::<f32>()?;
    Ok(format!("classes {:?}, with sums {sums:.3?}\n", classes.dims()))
}
