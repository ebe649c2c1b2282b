//! Where the time of a run goes, step by step.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use candle_plan_kernels::threads::Threads;
use parking_lot::Mutex;
use serde::Serialize;

use crate::error::Result;
use crate::execute::{KernelRun, Observer};
use crate::form::Form;
use crate::interrupt::Stop;
use crate::kernel::{Call, Types};
use crate::memory::type_of;
use crate::prepare::{Executable, PreparedBlock, PreparedStep};
use crate::types::Type;
use crate::value::Value;
use crate::words;
use crate::work::Work;

/// What one step took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTime {
    /// The op's name.
    pub op: &'static str,
    /// Where the step came from.
    pub origin: String,
    /// 0 for a step of the plan itself; a step of a block that a step of depth `n` runs has depth `n + 1`, and its time
    /// is part of that step's.
    pub depth: usize,
    /// How often the step ran, in all runs.
    pub calls: u64,
    /// How long, in all runs.
    pub seconds: f64,
    /// How it runs.
    #[serde(flatten)]
    pub form: Form,
    /// What it had to do, in all runs, where the op tells.
    #[serde(flatten)]
    pub work: Option<Work>,
}

impl Executable {
    /// Runs once to see what the steps have to do, then `runs` times, and gives every step in the plan's order.
    ///
    /// # Errors
    /// As [`Executable::run_until`].
    pub fn profile(&self, inputs: &[Value], runs: usize, threads: &Threads, stop: Stop) -> Result<Vec<StepTime>> {
        let survey = Survey::default();
        // Copies: what the caller holds is not written into, and steps would take longer for that.
        let given = || inputs.iter().map(copy).collect::<Result<Vec<Value>>>();
        self.run_observed(given()?, threads, stop, Some(&survey))?;
        let clock = Clock::default();
        for _ in 0..runs {
            self.run_observed(given()?, threads, stop, Some(&clock))?;
        }
        let mut steps = Vec::new();
        let found = Found { times: clock.times.into_inner(), works: survey.works.into_inner(), runs: runs as u64 };
        self.list(&self.main, 0, &found, &mut steps);
        Ok(steps)
    }

    fn list(&self, block: &PreparedBlock, depth: usize, found: &Found, steps: &mut Vec<StepTime>) {
        for step in &block.steps {
            let (calls, time) = found.times.get(&address(step)).copied().unwrap_or_default();
            let work = found.works.get(&address(step)).copied().flatten().map(|work| work * found.runs);
            let (origin, form) = (self.origin(step), step.kernel.form(step.packed.as_ref()));
            steps.push(StepTime { op: step.name, origin, depth, calls, seconds: time.as_secs_f64(), form, work });
            for block in &step.blocks {
                self.list(block, depth + 1, found, steps);
            }
        }
    }
}

fn copy(value: &Value) -> Result<Value> {
    match value {
        Value::Tensor(array) => Ok(words::copy(array)?.into()),
        other => Ok(other.clone()),
    }
}

/// Calls and time by the address of a step, which does not change while the executable lives.
type Times = HashMap<usize, (u64, Duration)>;

/// What the steps do in one run, by the same.
type Works = HashMap<usize, Option<Work>>;

struct Found {
    times: Times,
    works: Works,
    runs: u64,
}

/// Sees the sizes of what every step is given and gives.
#[derive(Default)]
struct Survey {
    works: Mutex<Works>,
}

impl Observer for Survey {
    fn kernel(&self, step: &PreparedStep, call: &mut Call, run: &mut KernelRun) -> Result<Vec<Value>> {
        let given: Option<Vec<Option<Type>>> =
            (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
        let outputs = run(call)?;
        let work = || {
            let made = outputs.iter().map(type_of).collect::<Result<Vec<_>>>().ok()?;
            let given = given?;
            let inputs: Vec<Option<&Type>> = given.iter().map(Option::as_ref).collect();
            step.kernel.work(&Types { inputs: &inputs, outputs: made.len() }, &made)
        };
        let work = work();
        let mut works = self.works.lock();
        let sum = works.entry(address(step)).or_insert(Some(Work::default()));
        *sum = sum.zip(work).map(|(sum, work)| sum + work);
        Ok(outputs)
    }
}

#[derive(Default)]
struct Clock {
    times: Mutex<Times>,
}

impl Observer for Clock {
    fn step(&self, step: &PreparedStep, run: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        run()?;
        let taken = start.elapsed();
        let mut times = self.times.lock();
        let (calls, time) = times.entry(address(step)).or_default();
        *calls += 1;
        *time += taken;
        Ok(())
    }
}

fn address(step: &PreparedStep) -> usize {
    std::ptr::from_ref(step).addr()
}
