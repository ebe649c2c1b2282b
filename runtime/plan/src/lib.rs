//! Runs plans, which candle-compiler makes of ONNX models and PyTorch modules, on [Candle](candle_core).
//!
//! A [`Session`] is a loaded plan. [`Session::builder`] lists the options, each with a default:
//!
//! ```
//! use candle_plan::{Error, Session, Value};
//!
//! # fn main() -> Result<(), Error> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
//! let session = Session::builder(path).threads(2).build()?;
//! let x = Value::new(vec![0f32; 4], &[1, 4])?;
//! let outputs = session.run_named([("x", x)])?;
//! assert_eq!(outputs["y"].read::<f32>()?, [0.5, 0.5]);
//! # Ok(())
//! # }
//! ```
//!
//! # Tensors of Candle
//!
//! [`Session::run_tensors`] takes Candle tensors without a copy if their elements are contiguous, and returns Candle
//! tensors. A plan with one input and one output is a layer, a [`Module`](candle_core::Module):
//!
//! ```
//! use candle_core::{DType, Device, Module, Tensor};
//! use candle_plan::Session;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plans/v1.plan");
//! let features = Session::builder(path).build()?;
//! let rows = Tensor::zeros((3, 4), DType::F32, &Device::Cpu)?;
//! assert_eq!(features.forward(&rows)?.dims(), [3, 2]);
//! # Ok(())
//! # }
//! ```
//!
//! [`SessionBuilder::candle_device`] makes the session where a device of Candle is, such as the one that a `VarBuilder` has.
//! With the feature `candle-cuda`, this may be an NVIDIA GPU.
//!
//! # More
//!
//! - A [`State`] holds what one run hands on to the next one, such as the caches of a language model.
//! - A [`Request`] asks for some of the outputs, and limits the time of a run.
//! - [`Weights`] replace those of a plan, from files of the formats safetensors and GGUF.
//! - A [`CustomOp`] computes an operator of the model with a function of the program.
//! - Every [`Error`] has a [kind](Error::kind), and the [place](Error::place) of the step that failed.
//!
//! # Features
//!
//! By default, a build has every operator. A program that knows its plans makes itself smaller with
//! `default-features = false` and the features of the operators that these plans need. A plan with other operators is
//! refused, and the error names the feature.
//!
//! | feature | operators |
//! |---|---|
//! | `detection` | NonMaxSuppression, RoiAlign, MaxRoiPool |
//! | `image` | GridSample, DeformConv, MaxUnpool, Col2Im |
//! | `ml` | trees, support vector machines and label encoders of the domain `ai.onnx.ml` |
//! | `random` | random numbers |
//! | `recurrent` | RNN, GRU, LSTM |
//! | `sequence` | sequences |
//! | `signal` | DFT, STFT, MelWeightMatrix |
//! | `text` | strings, and TfIdfVectorizer |
//!
//! Off by default, `candle-cuda` adds Candle tensors on an NVIDIA GPU as inputs and outputs. Candle then needs CUDA's
//! toolkit to build.

#![deny(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Only operators that are left out use some of the functions.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports, unused_macros))]

// One line of data flow: bytes are [read], [verified](verify), [prepared](prepare) and [executed](execute).
mod array;
mod axes;
mod broadcast;
#[allow(unsafe_code)] // Maps plan files, which the caller promises not to change.
mod builder;
#[allow(unsafe_code)] // Works on a stream of Candle's, which the session keeps alive.
mod candle_device;
#[cfg(feature = "candle-cuda")]
#[allow(unsafe_code)] // Makes storages of Candle's of memory that nobody else frees.
mod candle_storages;
#[cfg(feature = "candle-cuda")]
#[allow(unsafe_code)] // Lends Candle's tensors, and fills those that it allocates.
mod candle_tensors;
mod checksum;
mod constants;
mod cpu;
mod custom;
mod device;
mod dry_run;
mod dtype;
mod epilogue;
mod error;
mod executable;
mod execute;
mod expected;
mod extent;
mod form;
#[allow(unsafe_code)] // Launches kernels, which trust addresses and sizes.
mod gpu;
mod gpu_run;
mod growing;
mod ids;
mod infer;
mod inputs;
mod inspect;
#[doc(hidden)]
pub mod internal;
mod interrupt;
mod kernel;
mod layout;
#[allow(unsafe_code)] // Reads memory that belongs to the caller.
mod lend;
#[allow(unsafe_code)] // Maps plan files, which the caller promises not to change.
mod mapped;
mod memory;
mod movable;
mod newer;
mod observe;
mod operands;
mod operator;
mod ops;
#[cfg(feature = "text")]
mod pattern;
mod plan;
mod prepare;
mod profile;
mod read;
mod request;
mod session;
mod shared;
mod size;
mod slots;
mod stack;
mod state;
#[cfg(test)]
#[path = "../tables.rs"]
mod tables;
#[allow(unsafe_code)] // Lends Candle's tensors during a run.
mod tensors;
#[cfg(test)]
mod testing;
mod text;
mod types;
mod value;
mod verify;
mod weights;
mod work;

use array::by_width;
pub use builder::SessionBuilder;
pub use custom::{CustomCall, CustomOp};
use dtype::dispatch;
pub use dtype::{DType, Element};
use error::bail;
pub use error::{Error, ErrorKind, Place, Result};
pub use request::Request;
pub use session::Session;
pub use state::State;
pub use types::Type;
pub use value::Value;
pub use weights::Weights;
