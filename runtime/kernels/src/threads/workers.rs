//! Threads that do a caller's tasks with it.
//!
//! Kernels follow one another within microseconds, and waking a thread takes tens of them: a worker stays awake for a
//! while after each job. The caller never waits for a worker to begin; it only waits for those that did.

use std::any::Any;
use std::io;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a worker stays awake without a job: longer than what lies between two kernels.
const AWAKE: Duration = Duration::from_micros(100);
/// How many times a thread looks before it lets others have the processor.
const SPINS_BEFORE_YIELD: usize = 1000;

/// The workers of a session; one caller at a time has them.
pub(super) struct Workers {
    board: Arc<Board>,
    threads: Vec<JoinHandle<()>>,
    caller: Mutex<()>,
    /// The process that has the threads; a process that was forked from it has none.
    process: u32,
}

/// What the caller and the workers share.
#[derive(Default)]
struct Board {
    /// The number of the job in steps of [`NUMBER`], [`OPEN`] while workers may join it, and how many have joined.
    state: AtomicUsize,
    job: Mutex<Option<Job>>,
    /// How many tasks have been begun from the first on, and in steps of [`BACK`] how many from the last on.
    begun: AtomicU64,
    /// What a task of a worker panicked with.
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

/// Calls for tasks `0 .. tasks`.
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

    /// Runs the tasks on the caller's thread and the workers'; `false` without running any where another caller has the
    /// workers, or there are more tasks than can be counted.
    ///
    /// # Panics
    /// A task panicked.
    pub fn share(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) -> bool {
        let Some(caller) = self.caller.try_lock().ok().filter(|_| tasks < BACK as usize / 2) else { return false };
        // SAFETY: workers call `task` only while they have joined, and `close` returns when all have left: before
        // `task` ends.
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
            // Tasks' panics were caught; there is nothing else that a worker could fail with.
            let _ = thread.join();
        }
    }
}

impl Board {
    /// Lets workers join a job.
    fn open(&self, job: Job) {
        *lock(&self.job) = Some(job);
        self.begun.store(0, SeqCst);
        self.state.fetch_add(NUMBER + OPEN, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            self.wake_all();
        }
    }

    /// Ends the job: waits until every worker that joined has left.
    fn close(&self) {
        self.state.fetch_and(!OPEN, SeqCst);
        wait(|| self.state.load(SeqCst) & JOINED == 0);
    }

    /// Does tasks until all have been begun. Every second thread begins with the last ones: what a thread wrote in one
    /// job it finds in its own cache in the next, where neighboring tasks read what neighboring tasks wrote.
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

    /// What a worker does until the session ends.
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

    /// Joins the next job that is not number `done`, and gives its number; `None` once the session ends.
    fn join(&self, done: usize) -> Option<usize> {
        loop {
            let state = self.wait_for_job(done)?;
            if self.state.compare_exchange(state, state + 1, SeqCst, SeqCst).is_ok() {
                return Some(state / NUMBER);
            }
        }
    }

    /// The state in which a job can be joined.
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

    /// Sleeps until `is_time`, which turns true before [`Board::wake_all`] is called.
    fn sleep(&self, is_time: impl Fn() -> bool) {
        let mut sleep_lock = lock(&self.sleep_lock);
        // Counted before it looks: whoever changes what it looks at either is seen now or sees the sleeper.
        self.sleepers.fetch_add(1, SeqCst);
        while !is_time() {
            sleep_lock = self.wake.wait(sleep_lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }

    fn wake_all(&self) {
        let _guard = lock(&self.sleep_lock);
        self.wake.notify_all();
    }
}

/// Looks until it is so: briefly for itself, then between other threads' turns.
fn wait(is_so: impl Fn() -> bool) {
    let mut spins = 0;
    while !is_so() {
        spins += 1;
        if spins < SPINS_BEFORE_YIELD {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// The guard; nothing that these locks hold can be left half done by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
