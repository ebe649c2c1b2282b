//! Requests that wait for a run, and how many of them run together.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use candle_plan::{Error, Value};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot::Sender;

use crate::batch;

/// A request: its inputs in the plan's order, and where the outputs go.
pub struct Job {
    pub inputs: Vec<Value>,
    pub arrived: Instant,
    pub deadline: Instant,
    pub reply: Sender<Result<Vec<Value>, Error>>,
}

/// The reason why the queue takes no request.
#[derive(Debug, PartialEq)]
pub enum Refused {
    Full,
    Closed,
}

/// Waiting requests, in the order of their arrival.
pub struct Queue {
    /// The number of rows up to which requests run together.
    max_batch: usize,
    /// How long the first request of a batch waits for others.
    max_delay: Duration,
    most: usize,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_closed: bool,
    runs: u64,
}

impl Waiting {
    /// Removes requests that timed out, and those of closed connections.
    fn clean(&mut self) {
        self.jobs.retain(|job| !job.reply.is_closed());
    }
}

impl Queue {
    pub fn new(max_batch: usize, max_delay: Duration, most: usize) -> Queue {
        Queue { max_batch, max_delay, most, waiting: Mutex::default(), changed: Condvar::new() }
    }

    /// # Errors
    /// The queue is full or closed.
    pub fn push(&self, job: Job) -> Result<(), Refused> {
        let mut waiting = self.waiting.lock();
        waiting.clean();
        if waiting.is_closed {
            return Err(Refused::Closed);
        }
        if waiting.jobs.len() >= self.most {
            return Err(Refused::Full);
        }
        waiting.jobs.push_back(job);
        self.changed.notify_one();
        Ok(())
    }

    /// The number of requests that wait.
    pub fn len(&self) -> usize {
        let mut waiting = self.waiting.lock();
        waiting.clean();
        waiting.jobs.len()
    }

    /// The number of batches that have left the queue.
    pub fn runs(&self) -> u64 {
        self.waiting.lock().runs
    }

    /// Takes no further requests. Those that wait run without a delay.
    pub fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.changed.notify_one();
    }

    pub fn is_closed(&self) -> bool {
        self.waiting.lock().is_closed
    }

    /// The requests of the next run, after waiting for them; `None` if the queue is closed and empty.
    pub fn next(&self) -> Option<Vec<Job>> {
        let mut waiting = self.waiting.lock();
        loop {
            waiting.clean();
            let Some(first) = waiting.jobs.front() else {
                if waiting.is_closed {
                    return None;
                }
                self.changed.wait(&mut waiting);
                continue;
            };
            let until = first.arrived + self.max_delay;
            let (count, is_full) = self.batch(&waiting.jobs);
            if is_full || waiting.is_closed || Instant::now() >= until {
                waiting.runs += 1;
                return Some(waiting.jobs.drain(..count).collect());
            }
            self.changed.wait_until(&mut waiting, until);
        }
    }

    /// How many of the first requests run together, and whether no further one can join them.
    fn batch(&self, jobs: &VecDeque<Job>) -> (usize, bool) {
        let (mut count, mut rows) = (0, 0);
        for job in jobs {
            let (Some(more), Some(first)) = (batch::rows(&job.inputs), jobs.front()) else {
                return (count.max(1), true); // A request that no other can join runs alone.
            };
            if count > 0 && (more > self.max_batch.saturating_sub(rows) || !batch::fit(&first.inputs, &job.inputs)) {
                return (count, true);
            }
            (count, rows) = (count + 1, rows.saturating_add(more));
        }
        (count, rows >= self.max_batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::{channel, Receiver};

    fn job(dims: &[usize]) -> (Job, Receiver<Result<Vec<Value>, Error>>) {
        let (reply, answer) = channel();
        let x = Value::new(vec![0f32; dims.iter().product()], dims).expect("as many numbers");
        let arrived = Instant::now();
        (Job { inputs: vec![x], arrived, deadline: arrived + Duration::from_secs(60), reply }, answer)
    }

    /// The numbers of requests of the runs of these requests.
    fn runs(max_batch: usize, requests: &[&[usize]]) -> Vec<usize> {
        let queue = Queue::new(max_batch, Duration::from_secs(60), requests.len());
        let pushed = requests.iter().map(|dims| job(dims)).map(|(job, answer)| {
            queue.push(job).expect("the queue is not full");
            answer
        });
        let answers: Vec<_> = pushed.collect();
        queue.close();
        let runs = std::iter::from_fn(|| queue.next().map(|jobs| jobs.len())).collect();
        drop(answers);
        runs
    }

    #[test]
    fn requests_run_together_if_they_fit() {
        assert_eq!(runs(4, &[&[1, 2], &[2, 2], &[1, 2], &[1, 2]]), [3, 1]);
        assert_eq!(runs(4, &[&[3, 2], &[2, 2], &[9, 2], &[1, 2]]), [1, 1, 1, 1]);
        assert_eq!(runs(4, &[&[1, 2], &[1, 3], &[1, 3]]), [1, 2]);
        assert_eq!(runs(4, &[&[0, 2], &[1, 2], &[], &[1, 2]]), [1, 1, 1, 1]);
        assert_eq!(runs(1, &[&[1, 2], &[1, 2]]), [1, 1]);
    }

    #[test]
    fn a_full_batch_does_not_wait() {
        let queue = Queue::new(2, Duration::from_secs(3600), 8);
        let (first, _first) = job(&[1, 2]);
        let (second, _second) = job(&[1, 2]);
        queue.push(first).expect("the queue is not full");
        queue.push(second).expect("the queue is not full");
        assert_eq!(queue.next().map(|jobs| jobs.len()), Some(2));
    }

    #[test]
    fn a_request_without_a_client_leaves_the_queue() {
        let queue = Queue::new(2, Duration::from_secs(3600), 1);
        let (gone, answer) = job(&[1, 2]);
        queue.push(gone).expect("the queue is not full");
        assert_eq!(queue.push(job(&[1, 2]).0), Err(Refused::Full));
        drop(answer);
        assert_eq!(queue.len(), 0);
        queue.close();
        assert_eq!(queue.push(job(&[1, 2]).0), Err(Refused::Closed));
        assert!(queue.next().is_none());
    }
}
