//! The threads of one session.

use std::sync::Arc;

/// The threads a kernel may use: the caller alone, or a pool of fixed size.
///
/// A kernel splits its output among tasks that never share an element and never change the order of a sum, so that the
/// result is the same for every number of threads. Work under about 20 µs is not worth a split.
#[derive(Clone)]
pub struct Threads {
    pool: Option<Arc<rayon::ThreadPool>>,
}

impl Threads {
    /// A pool of `count` threads; one thread means the caller's own.
    ///
    /// # Errors
    /// The operating system refused to start a thread.
    pub fn new(count: usize) -> Result<Threads, rayon::ThreadPoolBuildError> {
        if count <= 1 {
            return Ok(Threads::serial());
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build()?;
        Ok(Threads { pool: Some(Arc::new(pool)) })
    }

    /// The caller's own thread.
    pub const fn serial() -> Threads {
        Threads { pool: None }
    }

    /// How many threads may run at once.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.current_num_threads())
    }

    /// Runs `work` inside the pool, so that rayon's own iterators and the crates built on it use these threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `task(i)` for every `i < tasks`, in any order.
    pub fn for_each(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        match &self.pool {
            Some(pool) if tasks > 1 => pool.install(|| {
                use rayon::prelude::*;
                (0..tasks).into_par_iter().for_each(&task);
            }),
            _ => (0..tasks).for_each(task),
        }
    }

    /// Calls `task(i, chunk)` for the consecutive chunks of `length` elements of `out`, the last one maybe shorter.
    pub fn for_each_chunk<T: Send>(&self, out: &mut [T], length: usize, task: impl Fn(usize, &mut [T]) + Sync) {
        let length = length.max(1);
        match &self.pool {
            Some(pool) if out.len() > length => pool.install(|| {
                use rayon::prelude::*;
                out.par_chunks_mut(length).enumerate().for_each(|(i, chunk)| task(i, chunk));
            }),
            _ => out.chunks_mut(length).enumerate().for_each(|(i, chunk)| task(i, chunk)),
        }
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}
