//! The threads of one session.

mod workers;
mod worth;

use std::io;
use std::sync::Arc;

use workers::Workers;
pub(crate) use worth::is_worth_splitting;

use crate::buffer;

/// The most threads of a session.
pub const MOST_THREADS: usize = 1024;

/// The threads that a kernel may use: the caller alone, or the caller and the session's workers.
///
/// A kernel splits its output into tasks that share no element and do not change the order of a sum, so the result is
/// the same for every number of threads. Work of less than about 20 µs is not worth splitting.
#[derive(Clone)]
pub struct Threads {
    workers: Option<Arc<Workers>>,
}

impl Threads {
    /// Starts `count - 1` workers, to use with the caller's thread.
    ///
    /// # Errors
    /// The operating system refused to start a thread.
    pub fn new(count: usize) -> io::Result<Threads> {
        let workers = if count <= 1 { None } else { Some(Arc::new(Workers::new(count - 1)?)) };
        Ok(Threads { workers })
    }

    /// The caller's thread alone.
    pub const fn serial() -> Threads {
        Threads { workers: None }
    }

    /// The number of threads that may run at once.
    pub fn count(&self) -> usize {
        self.workers.as_ref().map_or(1, |workers| workers.count() + 1)
    }

    /// Calls `task(i)` for every `i < tasks`, in any order. Inside a task, or while another caller uses the workers,
    /// the caller runs all of them.
    ///
    /// # Panics
    /// A task panicked.
    pub fn for_each(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.for_each_of(tasks, &task);
    }

    /// Takes a trait object, so that the code is compiled once for all tasks.
    fn for_each_of(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let share = |workers: &Workers| match buffer::shared() {
            None => workers.share(tasks, task),
            budget => workers.share(tasks, &|i| buffer::sharing(budget.clone(), || task(i))),
        };
        match self.workers.as_deref().filter(|_| tasks > 1) {
            Some(workers) if share(workers) => {}
            _ => (0..tasks).for_each(task),
        }
    }

    /// Calls `task(i, chunk)` for consecutive chunks of `length` elements of `out`; the last one may be shorter.
    ///
    /// # Panics
    /// A task panicked.
    pub fn for_each_chunk<T: Send>(&self, out: &mut [T], length: usize, task: impl Fn(usize, &mut [T]) + Sync) {
        let (length, total) = (length.max(1), out.len());
        let first = First(out.as_mut_ptr());
        self.for_each(total.div_ceil(length), |i| {
            let start = i * length;
            // SAFETY: chunks are disjoint parts of `out`, and each task has its own.
            let chunk = unsafe { std::slice::from_raw_parts_mut(first.at(start), length.min(total - start)) };
            task(i, chunk);
        });
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

/// The start of the slice whose disjoint parts the tasks write.
struct First<T>(*mut T);

// SAFETY: tasks that share it use disjoint elements, of a type that is `Send`.
unsafe impl<T: Send> Sync for First<T> {}

impl<T> First<T> {
    fn at(&self, offset: usize) -> *mut T {
        self.0.wrapping_add(offset)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_task_runs_once() {
        for count in 1..5 {
            let threads = Threads::new(count).unwrap();
            assert_eq!(threads.count(), count);
            for tasks in [0, 1, 2, 3, 7, 100, 1000] {
                let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                threads.for_each(tasks, |i| {
                    runs[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(runs.iter().all(|run| run.load(Ordering::Relaxed) == 1), "{count} threads, {tasks} tasks");
            }
        }
    }

    #[test]
    fn chunks_are_consecutive() {
        let threads = Threads::new(3).unwrap();
        let mut out = vec![0; 1003];
        threads.for_each_chunk(&mut out, 10, |i, chunk| chunk.fill(i));
        assert!(out.iter().enumerate().all(|(i, &chunk)| chunk == i / 10));
        threads.for_each_chunk(&mut [0u8; 0], 0, |_, _| unreachable!());
    }

    #[test]
    fn callers_and_tasks_may_call() {
        let (threads, sum) = (Threads::new(3).unwrap(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        threads.for_each(8, |_| {
                            threads.for_each(2, |_| {
                                sum.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 4 * 200 * 8 * 2);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_threads_usable() {
        let threads = Threads::new(2).unwrap();
        for bad in 0..50 {
            let run = || threads.for_each(50, |i| assert_ne!(i, bad, "task {bad}"));
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
            assert!(panic.downcast::<String>().unwrap().contains(&format!("task {bad}")));
        }
        threads.for_each(10, |_| ());
    }

    #[test]
    fn workers_that_fell_asleep_wake() {
        let threads = Threads::new(2).unwrap();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let helped = std::sync::Barrier::new(2);
            // The two tasks wait for each other, so a single thread would never finish.
            threads.for_each(2, |_| {
                helped.wait();
            });
        }
    }
}
