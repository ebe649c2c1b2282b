//! The commands that a run would give a GPU, step by step, recorded on a machine without one.
//!
//! Steps on the host run, and read zeros from the GPU. If shapes or branches of a plan depend on values that the GPU
//! computes, the dry run gives the commands for zeros.

use std::collections::BTreeMap;
use std::collections::HashMap;

use candle_plan_device::{Command, GemmKind, Gpu};
use candle_plan_kernels::threads::Threads;
use parking_lot::Mutex;
use serde::Serialize;

use crate::device::{Device, Reason};
use crate::error::Result;
use crate::executable::Executable;
use crate::form::Estimate;
use crate::ids::StepId;
use crate::kernel::Call;
use crate::layout::Layout;
use crate::memory::type_of;
use crate::observe::{KernelRun, Observer, Seen};
use crate::prepare::{Mark, PreparedBlock, PreparedStep};
use crate::profile::work_of;
use crate::request::Request;
use crate::types::{Type, Types};
use crate::value::Value;
use crate::work::Work;

/// The commands of a step in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepCommands {
    /// Its place in the plan's block; a step that prepare added has the place of the step that it serves.
    pub index: StepId,
    /// The op's name.
    pub op: &'static str,
    /// Where the step came from.
    pub origin: String,
    /// 0 for a step of the plan itself, `n + 1` for one of a block that a step of depth `n` runs.
    pub depth: usize,
    /// Whether prepare added it.
    pub added: bool,
    /// The layout of its first output.
    pub layout: Option<Layout>,
    /// Why it runs on the host, if it does.
    pub host: Option<Reason>,
    /// The number of times that it ran.
    pub calls: u64,
    /// The kernels, as `module/kernel`, and the number of launches of each.
    pub kernels: BTreeMap<String, u64>,
    /// The matrix products that the library computes.
    pub products: Vec<Product>,
    /// Bytes from the host.
    pub uploaded: u64,
    /// Bytes to the host.
    pub downloaded: u64,
    /// The number of times that the host waits for the GPU.
    pub waits: u64,
    /// Its work by the op's formula, if it is known.
    pub work: Option<Work>,
    /// The forms that its kernel compared in its first run, if it has several.
    pub alternatives: Vec<Estimate>,
}

/// Equal matrix products, `[m, k] · [k, n]`, `batch` of them in each of `calls` calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Product {
    /// The element types: `f32`, or `f16_f32` if the sums are wider than the factors.
    pub kind: &'static str,
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// Columns of the first factor, and rows of the second.
    pub k: u32,
    /// Matrix products per call.
    pub batch: u32,
    /// Calls of the library.
    pub calls: u64,
}

impl Executable {
    /// The commands of one run, in the plan's order, for a plan that was prepared for a [dry run](Gpu::dry_run).
    ///
    /// # Errors
    /// As [`Executable::run`]. A step on the host may also fail on the zeros that it reads.
    pub fn commands(&self, inputs: Vec<Value>, threads: &Threads) -> Result<Vec<StepCommands>> {
        let Device::Gpu(gpu) = &self.device else { return Ok(Vec::new()) };
        let recorder = Recorder { gpu, facts: Mutex::default() };
        self.run_observed(inputs, threads, &Request::default(), (None, Some(&recorder)))?;
        let facts = recorder.facts.into_inner();
        let mut steps = Vec::new();
        self.list_commands(&self.main, 0, &facts, &mut steps);
        steps.push(outputs(StepId(self.main.steps.len() as u32), &gpu.take_commands()));
        Ok(steps)
    }

    fn list_commands(&self, block: &PreparedBlock, depth: usize, facts: &StepFacts, steps: &mut Vec<StepCommands>) {
        for step in &block.steps {
            let Facts { calls, commands, work, alternatives } = facts.get(&step.mark).cloned().unwrap_or_default();
            steps.push(StepCommands {
                index: step.index,
                op: step.name,
                origin: self.origin(step),
                depth,
                added: step.added,
                layout: step.outputs.iter().flatten().next().map(|&slot| block.held[slot.at()].layout),
                host: step.host.map(|hosted| hosted.reason),
                calls,
                work,
                alternatives,
                ..StepCommands::of(&commands)
            });
            for block in &step.blocks {
                self.list_commands(block, depth + 1, facts, steps);
            }
        }
    }
}

impl StepCommands {
    /// The sums of the commands; the other fields have their defaults.
    fn of(commands: &[Command]) -> StepCommands {
        let uploads =
            commands
                .iter()
                .filter_map(|command| if let Command::Upload(bytes) = command { Some(*bytes) } else { None });
        let downloads: Vec<usize> = commands
            .iter()
            .filter_map(|command| if let Command::Download(bytes) = command { Some(*bytes) } else { None })
            .collect();
        StepCommands {
            kernels: kernels(commands),
            products: products(commands),
            uploaded: uploads.map(|bytes| bytes as u64).sum(),
            downloaded: downloads.iter().map(|&bytes| bytes as u64).sum(),
            waits: downloads.len() as u64,
            ..StepCommands::default()
        }
    }
}

/// The end of a run: all outputs come to the host at once, with the record of faults.
fn outputs(index: StepId, commands: &[Command]) -> StepCommands {
    StepCommands { index, op: "Outputs", added: true, calls: 1, ..StepCommands::of(commands) }
}

/// The facts about each step.
type StepFacts = HashMap<Mark, Facts>;

#[derive(Debug, Clone, Default)]
struct Facts {
    calls: u64,
    commands: Vec<Command>,
    work: Option<Work>,
    alternatives: Vec<Estimate>,
}

struct Recorder<'a> {
    gpu: &'a Gpu,
    facts: Mutex<StepFacts>,
}

impl Observer for Recorder<'_> {
    fn sees_deliveries(&self) -> bool {
        false
    }

    fn kernel(&self, seen: Seen, call: &mut Call, run: &mut KernelRun) -> Result<Vec<Value>> {
        let input_types: Option<Vec<Option<Type>>> =
            (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
        self.gpu.take_commands(); // of no step: a run begins with the record of faults
        let outputs = run(call)?;
        let work = input_types.as_ref().and_then(|input_types| work_of(seen.step, input_types, &outputs));
        let mut steps = self.facts.lock();
        let facts = steps.entry(seen.step.mark).or_default();
        if facts.calls == 0 {
            facts.alternatives = input_types.map(|types| alternatives(seen.step, &types)).unwrap_or_default();
        }
        facts.work = if facts.calls == 0 { work } else { facts.work.zip(work).map(|(sum, work)| sum + work) };
        facts.calls += 1;
        facts.commands.extend(self.gpu.take_commands());
        Ok(outputs)
    }
}

fn alternatives(step: &PreparedStep, inputs: &[Option<Type>]) -> Vec<Estimate> {
    let Some(kernel) = step.kernel.on_gpu() else { return Vec::new() };
    let inputs: Vec<Option<&Type>> = inputs.iter().map(Option::as_ref).collect();
    kernel.estimates(&Types::of(&inputs, step.outputs.len()))
}

fn kernels(commands: &[Command]) -> BTreeMap<String, u64> {
    let mut launches = BTreeMap::new();
    for command in commands {
        if let Command::Launch(symbol, _) = command {
            *launches.entry(format!("{}/{symbol}", symbol.module)).or_default() += 1;
        }
    }
    launches
}

/// The products in order, with equal ones merged.
fn products(commands: &[Command]) -> Vec<Product> {
    let mut products: Vec<Product> = Vec::new();
    for command in commands {
        let Command::Multiply { kind, m, n, k, batch } = *command else { continue };
        let product = Product { kind: GemmKind::name(kind), m, n, k, batch, calls: 0 };
        let same = |other: &&mut Product| Product { calls: 0, ..(**other).clone() } == product;
        match products.iter_mut().find(same) {
            Some(known) => known.calls += 1,
            None => products.push(Product { calls: 1, ..product }),
        }
    }
    products
}
