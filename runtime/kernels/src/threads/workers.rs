//! Worker threads, which run tasks together with the caller's thread.
//!
//! Kernels follow each other within microseconds, but waking up a thread takes tens of microseconds. A worker therefore
//! spins for a while after each job. The caller waits only for the workers that have joined the job.

use std::any::Any;
use std::io;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a worker spins without a job: longer than the time between two kernels.
const AWAKE: Duration = Duration::from_micros(100);
/// The number of spins of a thread before it yields the processor.
const SPINS_BEFORE_YIELD: usize = 1000;

/// The workers of a session. Only one caller uses them at a time.
pub(super) struct Workers {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
    caller: Mutex<()>,
    /// The process that owns the threads. A forked process has none of them.
    process: u32,
}

/// The state that the caller and the workers share.
#[derive(Default)]
struct Board {
    /// The job's number in steps of [`NUMBER`], the flag [`OPEN`] while workers may join, and the number of workers
    /// that have joined.
    state: AtomicUsize,
    job: Mutex<Option<Job>>,
    /// The number of tasks that have started from the front, and, in steps of [`BACK`], from the back.
    begun: AtomicU64,
    /// The payload of a worker's panic.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    sleepers: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
    ended: AtomicBool,
}

const OPEN: usize = 1 << 15;
const JOINED: usize = OPEN - 1;
const NUMBER: usize = OPEN << 1;
const BACK: u64 = 1 << 32;

/// Runs `task(i)` for `i` in `0 .. tasks`.
#[derive(Clone, Copy)]
struct Job {
    task: &'static (dyn Fn(usize) + Sync),
    tasks: usize,
}

impl Workers {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// The operating system refused to start one.
    pub fn new(count: usize) -> io::Result<Workers> {
        let (board, caller, process) = (Arc::default(), Mutex::new(()), std::process::id());
        let mut workers = Workers { board, threads: Vec::new(), caller, process };
        for i in 0..count.min(JOINED) {
            let board = workers.board.clone();
            let thread = std::thread::Builder::new().name(format!("worker-{i}"));
            workers.threads.push(thread.spawn(move || board.serve(i + 1))?);
        }
        Ok(workers)
    }

    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Runs the tasks on the caller's thread and the workers. Returns `false`, and runs nothing, if another caller uses
    /// the workers, or if there are too many tasks for the counter.
    ///
    /// # Panics
    /// A task panicked.
    pub fn share(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) -> bool {
        let Some(caller) = self.caller.try_lock().ok().filter(|_| tasks < BACK as usize / 2) else { return false };
        // SAFETY: workers call `task` only between joining and leaving the job. `close` returns after all have left,
        // while the borrow of `task` is still valid.
        let task = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(task) };
        let job = Job { task, tasks };
        self.board.open(job);
        let own = catch_unwind(AssertUnwindSafe(|| self.board.work(job, 0)));
        self.board.close();
        let workers = lock(&self.board.panic).take();
        drop(caller);
        if let Some(panic) = own.err().or(workers) {
            resume_unwind(panic);
        }
        true
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::take(&mut self.threads).into_iter().for_each(std::mem::forget);
            return;
        }
        self.board.ended.store(true, SeqCst);
        self.board.wake_all();
        for thread in self.threads.drain(..) {
            // `serve` catches the panics of tasks, and nothing else in a worker panics.
            let _ = thread.join();
        }
    }
}

impl Board {
    /// Opens a job for workers to join.
    fn open(&self, job: Job) {
        *lock(&self.job) = Some(job);
        self.begun.store(0, SeqCst);
        self.state.fetch_add(NUMBER + OPEN, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            self.wake_all();
        }
    }

    /// Closes the job, and waits until every worker that joined has left.
    fn close(&self) {
        self.state.fetch_and(!OPEN, SeqCst);
        wait(|| self.state.load(SeqCst) & JOINED == 0);
    }

    /// Runs tasks until all have started. Every second thread starts from the back. The tasks of
    /// the next job read the results of neighboring tasks of this job, so each thread finds its data in its own cache.
    fn work(&self, job: Job, thread: usize) {
        let is_back = !thread.is_multiple_of(2);
        loop {
            let begun = self.begun.fetch_add(if is_back { BACK } else { 1 }, SeqCst);
            let [front, back] = [begun % BACK, begun / BACK].map(|count| count as usize);
            if front + back >= job.tasks {
                return;
            }
            (job.task)(if is_back { job.tasks - 1 - back } else { front });
        }
    }

    /// Runs jobs until the session ends.
    fn serve(&self, thread: usize) {
        let mut number = 0;
        while let Some(joined) = self.join(number) {
            number = joined;
            if let Some(job) = *lock(&self.job) {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.work(job, thread))) {
                    lock(&self.panic).get_or_insert(panic);
                }
            }
            self.state.fetch_sub(1, SeqCst);
        }
    }

    /// Joins the next job whose number is not `done`, and returns its number; `None` when the session ends.
    fn join(&self, done: usize) -> Option<usize> {
        loop {
            let state = self.wait_for_job(done)?;
            if self.state.compare_exchange(state, state + 1, SeqCst, SeqCst).is_ok() {
                return Some(state / NUMBER);
            }
        }
    }

    /// Spins, then sleeps, until a new job is open, and returns the state; `None` when the session ends.
    fn wait_for_job(&self, done: usize) -> Option<usize> {
        let is_new = |state: usize| state & OPEN != 0 && state / NUMBER != done;
        let begun = Instant::now();
        for look in 1usize.. {
            let state = self.state.load(SeqCst);
            if self.ended.load(SeqCst) || is_new(state) {
                return Some(state).filter(|_| !self.ended.load(SeqCst));
            }
            std::hint::spin_loop();
            if look.is_multiple_of(64) && begun.elapsed() > AWAKE {
                self.sleep(|| self.ended.load(SeqCst) || is_new(self.state.load(SeqCst)));
            }
        }
        None
    }

    /// Sleeps until `is_ready`, which must become true before [`Board::wake_all`] is called.
    fn sleep(&self, is_ready: impl Fn() -> bool) {
        let mut sleep_lock = lock(&self.sleep_lock);
        // Counted before the first check: a thread that changes the condition either is seen by this check, or sees the
        // sleeper.
        self.sleepers.fetch_add(1, SeqCst);
        while !is_ready() {
            sleep_lock = self.wake.wait(sleep_lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn wake_all(&self) {
        let _guard = lock(&self.sleep_lock);
        self.wake.notify_all();
    }
}

/// Spins until `is_done`, and yields the processor after a while.
fn wait(is_done: impl Fn() -> bool) {
    let mut spins = 0;
    while !is_done() {
        spins += 1;
        if spins < SPINS_BEFORE_YIELD {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Locks the mutex, and ignores poisoning: a panic cannot leave these values half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
