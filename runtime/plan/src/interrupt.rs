//! Ends a run from outside, between two steps.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Tells whether a run must end early.
pub type Stop<'a> = &'a dyn Fn() -> bool;

const PERIOD: Duration = Duration::from_millis(50);
/// If the steps since the last look at the clock took less than this, the next look comes later.
const SHORT: Duration = Duration::from_millis(1);
/// The most steps between two looks at the clock. A look takes about as long as a very small step.
const MOST_STEPS: u32 = 64;

/// How much later the next look comes after steps that took little time.
const GROWTH: u32 = 4;

/// Asks a [`Stop`] about every 50 ms, and compares the time with a deadline, between steps only.
pub(crate) struct Watch<'a> {
    stop: Stop<'a>,
    deadline: Option<Instant>,
    asked: Cell<Instant>,
    looked: Cell<Instant>,
    stride: Cell<u32>,
    steps_left: Cell<u32>,
}

impl<'a> Watch<'a> {
    pub fn new(stop: Stop<'a>, deadline: Option<Instant>) -> Watch<'a> {
        let now = Cell::new(Instant::now());
        // The check before the first step need not look.
        Watch { stop, deadline, asked: now.clone(), looked: now, stride: Cell::new(1), steps_left: Cell::new(2) }
    }

    /// Asks the stop if it is time; called before every step.
    ///
    /// # Errors
    /// [`Error::Interrupted`] and [`Error::TimedOut`]: the run must end.
    pub fn check(&self) -> Result<()> {
        if self.is_due() {
            self.look(Instant::now())
        } else {
            Ok(())
        }
    }

    /// Counts a step, and tells whether it is time to look at the clock.
    fn is_due(&self) -> bool {
        self.steps_left.set(self.steps_left.get() - 1);
        self.steps_left.get() == 0
    }

    fn look(&self, now: Instant) -> Result<()> {
        let small = now - self.looked.replace(now) < SHORT;
        self.stride.set(if small { MOST_STEPS.min(GROWTH * self.stride.get()) } else { 1 });
        self.steps_left.set(self.stride.get());
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(Error::TimedOut);
        }
        if now - self.asked.get() < PERIOD {
            return Ok(());
        }
        self.asked.set(now);
        if (self.stop)() {
            Err(Error::Interrupted)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a stop that never ends the run is asked in `steps` steps of duration `each`.
    fn asked(steps: u32, each: Duration) -> u32 {
        let count = Cell::new(0);
        let stop = || {
            count.set(count.get() + 1);
            false
        };
        let watch = Watch::new(&stop, None);
        let start = watch.asked.get();
        for step in 0..=steps {
            if watch.is_due() {
                watch.look(start + each * step).expect("nobody stops it");
            }
        }
        count.get()
    }

    #[test]
    fn a_stop_is_asked_about_every_50_ms() {
        for (steps, each, least, most) in [
            (1_000_000, Duration::from_micros(1), 18, 20),
            (1000, Duration::from_millis(1), 18, 20),
            (10, Duration::from_secs(1), 10, 10),
            (49, Duration::from_millis(1), 0, 0),
        ] {
            let found = asked(steps, each);
            assert!((least..=most).contains(&found), "{steps} steps of {each:?}: asked {found} times");
        }
    }

    #[test]
    fn a_run_that_is_to_end_is_an_error() {
        let watch = Watch::new(&|| true, None);
        assert!(watch.look(watch.asked.get() + PERIOD).is_err());
        assert!(watch.look(watch.asked.get()).is_ok(), "not at once again");
    }

    #[test]
    fn a_run_ends_at_its_deadline() {
        let start = Instant::now();
        let watch = Watch::new(&|| false, Some(start + Duration::from_millis(5)));
        assert!(watch.look(start + Duration::from_millis(4)).is_ok());
        assert!(matches!(watch.look(start + Duration::from_millis(5)), Err(Error::TimedOut)));
    }
}
