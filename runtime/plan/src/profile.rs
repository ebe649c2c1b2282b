//! Where the time of a run goes, step by step.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use candle_plan_kernels::threads::Threads;
use parking_lot::Mutex;
use serde::Serialize;

use crate::error::Result;
use crate::execute::Observer;
use crate::interrupt::Stop;
use crate::plan::OriginId;
use crate::prepare::{Executable, PreparedBlock, PreparedStep};
use crate::value::Value;

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
}

impl Executable {
    /// Runs once unobserved, then `runs` times, and gives every step in the plan's order.
    ///
    /// # Errors
    /// As [`Executable::run_until`].
    pub fn profile(&self, inputs: &[Value], runs: usize, threads: &Threads, stop: Stop) -> Result<Vec<StepTime>> {
        self.run_until(inputs.to_vec(), threads, stop)?;
        let clock = Clock::default();
        for _ in 0..runs {
            self.run_observed(inputs.to_vec(), threads, stop, Some(&clock))?;
        }
        let mut steps = Vec::new();
        self.list(&self.main, 0, &clock.times.into_inner(), &mut steps);
        Ok(steps)
    }

    fn list(&self, block: &PreparedBlock, depth: usize, times: &Times, steps: &mut Vec<StepTime>) {
        for step in &block.steps {
            let (calls, time) = times.get(&address(step)).copied().unwrap_or_default();
            let OriginId(origin) = step.origin;
            let origin = self.plan.origins.get(origin as usize).map_or_else(String::new, ToString::to_string);
            steps.push(StepTime { op: step.name, origin, depth, calls, seconds: time.as_secs_f64() });
            for block in &step.blocks {
                self.list(block, depth + 1, times, steps);
            }
        }
    }
}

/// Calls and time by the address of a step, which does not change while the executable lives.
type Times = HashMap<usize, (u64, Duration)>;

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
