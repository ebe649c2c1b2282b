//! The thread that runs the plan.

use std::panic::{catch_unwind, AssertUnwindSafe};

use candle_plan::{Error, Request, Result, Session, Value};

use crate::batch;
use crate::queue::{Job, Queue};

/// Runs requests until the queue is closed and empty.
pub fn work(session: &Session, queue: &Queue) {
    while let Some(jobs) = queue.next() {
        let answers = catch_unwind(AssertUnwindSafe(|| together(session, &jobs)));
        let answers = answers.unwrap_or_else(|_| jobs.iter().map(|_| Err(Error::op("the run failed"))).collect());
        for (job, answer) in jobs.into_iter().zip(answers) {
            let _ = job.reply.send(answer); // The client may have gone.
        }
    }
}

/// The outputs of requests that fit each other. If the joined run fails, each request runs alone, so that only a
/// wrong request has an error.
fn together(session: &Session, jobs: &[Job]) -> Vec<Result<Vec<Value>>> {
    if jobs.len() > 1 {
        if let Ok(outputs) = joined(session, jobs) {
            return outputs.into_iter().map(Ok).collect();
        }
    }
    jobs.iter().map(|job| run(session, job.inputs.clone(), std::slice::from_ref(job))).collect()
}

fn joined(session: &Session, jobs: &[Job]) -> Result<Vec<Vec<Value>>> {
    let inputs: Vec<Vec<Value>> = jobs.iter().map(|job| job.inputs.clone()).collect();
    let rows: Vec<usize> = inputs.iter().filter_map(|inputs| batch::rows(inputs)).collect();
    batch::split(&run(session, batch::join(&inputs)?, jobs)?, &rows)
}

/// Runs until the last of the requests' deadlines.
fn run(session: &Session, inputs: Vec<Value>, jobs: &[Job]) -> Result<Vec<Value>> {
    let deadline = jobs.iter().map(|job| job.deadline).max();
    session.run_request(inputs, &Request { deadline, ..Request::default() })
}
