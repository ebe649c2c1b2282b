//! What a GPU would be given to do by a run, step by step, found on a machine without one.
//!
//! Steps of the host run; what they read from the GPU is zeros. A plan whose shapes or branches depend on values that the
//! GPU computes is told of as these zeros decide it.

use std::collections::BTreeMap;
use std::collections::HashMap;

use candle_plan_device::{Command, Gpu, Kind};
use candle_plan_kernels::threads::Threads;
use parking_lot::Mutex;
use serde::Serialize;

use crate::device::{Device, Reason};
use crate::error::Result;
use crate::execute::{KernelRun, Observer, Seen};
use crate::kernel::Call;
use crate::layout::Layout;
use crate::memory::type_of;
use crate::prepare::{Executable, PreparedBlock};
use crate::profile::work_of;
use crate::types::Type;
use crate::value::Value;
use crate::work::Work;

/// The commands of a step in one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepCommands {
    /// Its place in the plan's block; a step that prepare added has that of the step which it serves.
    pub index: usize,
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
    /// Why it runs on the host, where it does.
    pub host: Option<Reason>,
    /// How often it ran.
    pub calls: u64,
    /// The kernels, as `module/kernel`, and how often each is launched.
    pub kernels: BTreeMap<String, u64>,
    /// The products that the library computes.
    pub products: Vec<Product>,
    /// Bytes from the host.
    pub uploaded: u64,
    /// Bytes to the host.
    pub downloaded: u64,
    /// How often the host waits for the GPU.
    pub waits: u64,
    /// What it has to do by its op's formula, where that tells.
    pub work: Option<Work>,
}

/// Equal products of matrices, `[m, k] · [k, n]`, each `batch` times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Product {
    /// The types of the elements: `f32`, or `f16_f32` for sums that are wider than the factors.
    pub kind: &'static str,
    /// Rows of the result.
    pub m: u32,
    /// Columns of the result.
    pub n: u32,
    /// Products that are added up.
    pub k: u32,
    /// Products of matrices in one call.
    pub batch: u32,
    /// Calls of the library.
    pub calls: u64,
}

impl Executable {
    /// The commands of one run, in the plan's order; of a plan that was prepared for a [dry run](Gpu::dry_run).
    ///
    /// # Errors
    /// As [`Executable::run`], also where a step of the host cannot take the zeros that it reads.
    pub fn commands(&self, inputs: Vec<Value>, threads: &Threads) -> Result<Vec<StepCommands>> {
        let Device::Gpu(gpu) = &self.device else { return Ok(Vec::new()) };
        let recorder = Recorder { gpu, found: Mutex::default() };
        self.run_observed(inputs, threads, &|| false, &recorder)?;
        let found = recorder.found.into_inner();
        let mut steps = Vec::new();
        self.list_commands(&self.main, 0, &found, &mut steps);
        steps.push(outputs(self.main.steps.len(), &gpu.take_commands()));
        Ok(steps)
    }

    fn list_commands(&self, block: &PreparedBlock, depth: usize, found: &Found, steps: &mut Vec<StepCommands>) {
        for step in &block.steps {
            let Facts { calls, commands, work } =
                found.get(&std::ptr::from_ref(step).addr()).cloned().unwrap_or_default();
            steps.push(StepCommands {
                index: step.index.0 as usize,
                op: step.name,
                origin: self.origin(step),
                depth,
                added: step.added,
                layout: step.outputs.iter().flatten().next().map(|&slot| block.held[slot.at()].layout),
                host: step.host.map(|hosted| hosted.reason),
                calls,
                work,
                ..StepCommands::of(&commands)
            });
            for block in &step.blocks {
                self.list_commands(block, depth + 1, found, steps);
            }
        }
    }
}

impl StepCommands {
    /// The commands alone.
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
fn outputs(index: usize, commands: &[Command]) -> StepCommands {
    StepCommands { index, op: "Outputs", added: true, calls: 1, ..StepCommands::of(commands) }
}

/// By the address of a step, which does not change while the executable lives.
type Found = HashMap<usize, Facts>;

#[derive(Debug, Clone, Default)]
struct Facts {
    calls: u64,
    commands: Vec<Command>,
    work: Option<Work>,
}

struct Recorder<'a> {
    gpu: &'a Gpu,
    found: Mutex<Found>,
}

impl Observer for Recorder<'_> {
    fn sees_deliveries(&self) -> bool {
        false
    }

    fn kernel(&self, seen: Seen, call: &mut Call, run: &mut KernelRun) -> Result<Vec<Value>> {
        let given: Option<Vec<Option<Type>>> =
            (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
        self.gpu.take_commands(); // of no step: a run begins with the record of faults
        let outputs = run(call)?;
        let work = given.and_then(|given| work_of(seen.step, &given, &outputs));
        let mut found = self.found.lock();
        let facts = found.entry(std::ptr::from_ref(seen.step).addr()).or_default();
        facts.work = if facts.calls == 0 { work } else { facts.work.zip(work).map(|(sum, work)| sum + work) };
        facts.calls += 1;
        facts.commands.extend(self.gpu.take_commands());
        Ok(outputs)
    }
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

/// The products in their order, equal ones together.
fn products(commands: &[Command]) -> Vec<Product> {
    let mut products: Vec<Product> = Vec::new();
    for command in commands {
        let Command::Multiply { kind, m, n, k, batch } = *command else { continue };
        let product = Product { kind: Kind::name(kind), m, n, k, batch, calls: 0 };
        let same = |other: &&mut Product| Product { calls: 0, ..(**other).clone() } == product;
        match products.iter_mut().find(same) {
            Some(known) => known.calls += 1,
            None => products.push(Product { calls: 1, ..product }),
        }
    }
    products
}
