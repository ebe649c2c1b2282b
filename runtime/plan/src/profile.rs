//! The time of a run, step by step.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use candle_plan_kernels::threads::Threads;
use parking_lot::Mutex;
use serde::Serialize;

use crate::device::{Device, Reason};
use crate::error::Result;
use crate::executable::Executable;
use crate::form::KernelForm;
use crate::interrupt::Stop;
use crate::kernel::Call;
use crate::memory::type_of;
use crate::observe::{KernelRun, Observer, Seen};
use crate::prepare::{Mark, PreparedBlock, PreparedStep};
use crate::request::Request;
use crate::types::{Type, Types};
use crate::value::held::storages;
use crate::value::Value;
use crate::work::Work;

/// The time, memory and work of one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTime {
    /// The op's name.
    pub op: &'static str,
    /// Where the step came from.
    pub origin: String,
    /// 0 for a step of the plan itself, `n + 1` for a step of a block that a step of depth `n` runs. The time of the
    /// outer step includes that of the inner one.
    pub depth: usize,
    /// The number of times that the step ran, in all runs.
    pub calls: u64,
    /// The time that it took, in all runs.
    pub seconds: f64,
    /// The most bytes of values that the run held while the step ran, without constants: its inputs and outputs, the
    /// values that later steps read, and those of the steps that run its block.
    pub alive_bytes: usize,
    /// Why it runs on the host, if that is not the session's device.
    pub host: Option<Reason>,
    /// How it runs.
    #[serde(flatten)]
    pub form: KernelForm,
    /// Its work in all runs, if it is known.
    #[serde(flatten)]
    pub work: Option<Work>,
}

impl Executable {
    /// Runs once to find the steps' work, then `runs` times to time them. Returns every step in the plan's order.
    ///
    /// # Errors
    /// As [`Executable::run_until`].
    pub fn profile(&self, inputs: &[Value], runs: usize, threads: &Threads, stop: Stop) -> Result<Vec<StepTime>> {
        let request = Request { stop, ..Request::default() };
        self.profile_of(runs, |observer| {
            self.run_observed(copies(inputs)?, threads, &request, (None, Some(observer))).map(drop)
        })
    }

    /// Calls `run` once to find the steps' work, then `runs` times to time them. It runs the plan with an observer.
    ///
    /// # Errors
    /// A run failed.
    pub(crate) fn profile_of(
        &self,
        runs: usize,
        mut run: impl FnMut(&dyn Observer) -> Result<()>,
    ) -> Result<Vec<StepTime>> {
        let survey = Survey::new(&self.constants);
        run(&survey)?;
        let clock = Clock { times: Mutex::default(), device: &self.device };
        for _ in 0..runs {
            run(&clock)?;
        }
        let mut steps = Vec::new();
        let (times, facts) = (clock.times.into_inner(), survey.facts.into_inner());
        let seen = Observations { times, facts, runs: runs as u64 };
        self.list(&self.main, 0, &seen, &mut steps);
        Ok(steps)
    }

    fn list(&self, block: &PreparedBlock, depth: usize, seen: &Observations, steps: &mut Vec<StepTime>) {
        for step in &block.steps {
            let (calls, time) = seen.times.get(&step.mark).copied().unwrap_or_default();
            let Facts { work, alive_bytes } = seen.facts.get(&step.mark).copied().unwrap_or_default();
            steps.push(StepTime {
                op: step.name,
                origin: self.origin(step),
                depth,
                calls,
                seconds: time.as_secs_f64(),
                alive_bytes,
                host: step.host.map(|hosted| hosted.reason),
                form: step.kernel().form(),
                work: work.map(|work| work * seen.runs),
            });
            for block in &step.blocks {
                self.list(block, depth + 1, seen, steps);
            }
        }
    }
}

/// Copies of the inputs that a caller holds. A step cannot write into the caller's values, and would take longer.
pub(crate) fn copies(inputs: &[Value]) -> Result<Vec<Value>> {
    inputs.iter().map(copy).collect()
}

fn copy(value: &Value) -> Result<Value> {
    match value {
        // A run does not write to inputs on the device.
        Value::Tensor(array) if !array.is_on_device() => Ok(array.copy()?.into()),
        other => Ok(other.clone()),
    }
}

/// Calls and time by step.
type Times = HashMap<Mark, (u64, Duration)>;

/// A step's work in one run, and the bytes that are alive meanwhile.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    work: Option<Work>,
    alive_bytes: usize,
}

/// The observations of several runs.
struct Observations {
    times: Times,
    facts: HashMap<Mark, Facts>,
    runs: u64,
}

/// Observes the sizes of every step's inputs and outputs, and the storages of values.
struct Survey {
    facts: Mutex<HashMap<Mark, Facts>>,
    /// The storages of constants.
    constants: HashSet<usize>,
    /// The storages and their bytes, for each block that runs, the plan's own first.
    held: Mutex<Vec<HashMap<usize, usize>>>,
}

impl Survey {
    fn new(constants: &[Value]) -> Survey {
        let mut held = HashMap::new();
        constants.iter().for_each(|value| storages(value, &mut held));
        let constants = held.into_keys().collect();
        Survey { facts: Mutex::default(), constants, held: Mutex::default() }
    }

    /// The bytes that all running blocks hold, with the outputs of a step.
    fn alive(&self, outputs: &[Value]) -> usize {
        let mut all = HashMap::new();
        outputs.iter().for_each(|value| storages(value, &mut all));
        self.held.lock().iter().for_each(|held| all.extend(held));
        all.iter().filter(|(storage, _)| !self.constants.contains(storage)).map(|(_, bytes)| bytes).sum()
    }
}

impl Observer for Survey {
    fn kernel(&self, seen: Seen, call: &mut Call, run: &mut KernelRun) -> Result<Vec<Value>> {
        let input_types: Option<Vec<Option<Type>>> =
            (0..call.len()).map(|i| call.optional(i).map(type_of).transpose().ok()).collect();
        let mut held = HashMap::new();
        let inputs = (0..call.len()).filter_map(|i| call.optional(i));
        seen.slots.iter().flatten().chain(inputs).for_each(|value| storages(value, &mut held));
        self.held.lock().push(held);
        let outputs = run(call);
        let alive = outputs.as_ref().map_or(0, |outputs| self.alive(outputs));
        self.held.lock().pop();
        let outputs = outputs?;
        let work = input_types.and_then(|input_types| match seen.in_place {
            true => work_on_rows(input_types.get(1)?.as_ref()?),
            false => work_of(seen.step, &input_types, &outputs),
        });
        let mut facts = self.facts.lock();
        let first = Facts { work: Some(Work::default()), alive_bytes: 0 };
        let sum = facts.entry(seen.step.mark).or_insert(first);
        sum.work = sum.work.zip(work).map(|(sum, work)| sum + work);
        sum.alive_bytes = sum.alive_bytes.max(alive);
        Ok(outputs)
    }
}

/// A step's work for these outputs, if its op knows it.
pub(crate) fn work_of(step: &PreparedStep, input_types: &[Option<Type>], outputs: &[Value]) -> Option<Work> {
    let output_types = outputs.iter().map(type_of).collect::<Result<Vec<_>>>().ok()?;
    step.work(input_types, &output_types)
}

/// The work of a step that only writes rows of this type into a value of the state.
fn work_on_rows(rows: &Type) -> Option<Work> {
    Work::moving(&Types::of(&[Some(rows)], 1), std::slice::from_ref(rows))
}

struct Clock<'a> {
    times: Mutex<Times>,
    /// The time of a step includes the work of this device.
    device: &'a Device,
}

impl Observer for Clock<'_> {
    fn step(&self, step: &PreparedStep, run: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        run()?;
        self.device.finish()?;
        let taken = start.elapsed();
        let mut times = self.times.lock();
        let (calls, time) = times.entry(step.mark).or_default();
        *calls += 1;
        *time += taken;
        Ok(())
    }
}
