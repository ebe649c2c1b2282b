//! Runs plans on tensors that Candle has on the stand-in for a GPU: `candle-tensors SCENARIO PLAN`. A failed check ends the
//! process with an error, and so does a misuse of the driver.

mod example;
mod layers;
mod runs;
mod scenarios;
mod standin;

use std::path::Path;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, scenario, plan] = &arguments[..] else { return Err("a scenario and a plan are needed".into()) };
    candle_plan_device_cuda::register();
    scenarios::run(scenario, Path::new(plan))
}
