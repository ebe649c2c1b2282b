//! The options of the command line.

use std::str::FromStr;
use std::time::Duration;

/// How to call the program.
pub const USAGE: &str = "\
usage: candle-plan-server FILE.plan [OPTION VALUE]…
  --listen ADDRESS    the address and port, 127.0.0.1:8080 by default; port 0 means any free port
  --max-batch ROWS    joins requests along the first dimension, up to this number of rows; 1 by default, for no batches
  --max-delay MS      how long a request waits for others of its batch; 5 by default
  --queue REQUESTS    how many requests may wait; further ones get the status 503; 64 by default
  --timeout MS        how long a request may take, including its transfer; 30000 by default
  --max-body BYTES    the size of a request's body; 16 MiB by default
  --max-memory BYTES  the memory of the values of one run; no limit by default
  --threads COUNT     the threads of a run; one for each processor by default
  --grace MS          how long the server finishes requests after SIGTERM; 30000 by default";

/// The options of the command line.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub plan: String,
    pub listen: String,
    pub max_batch: usize,
    pub max_delay: Duration,
    pub queue: usize,
    pub timeout: Duration,
    pub max_body: usize,
    pub max_memory: Option<usize>,
    pub threads: Option<usize>,
    pub grace: Duration,
}

impl Options {
    /// # Errors
    /// The plan is missing, an option is unknown or has no value, or a value is not a number.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            plan: String::new(),
            listen: "127.0.0.1:8080".to_string(),
            max_batch: 1,
            max_delay: Duration::from_millis(5),
            queue: 64,
            timeout: Duration::from_secs(30),
            max_body: 16 << 20,
            max_memory: None,
            threads: None,
            grace: Duration::from_secs(30),
        };
        while let Some(argument) = arguments.next() {
            if !argument.starts_with("--") {
                if !std::mem::replace(&mut options.plan, argument).is_empty() {
                    return Err("a server runs one plan".to_string());
                }
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a value"))?;
            options.set(&argument, value)?;
        }
        match options.plan.is_empty() {
            true => Err("the plan is missing".to_string()),
            false => Ok(options),
        }
    }

    fn set(&mut self, option: &str, value: String) -> Result<(), String> {
        match option {
            "--listen" => self.listen = value,
            "--max-batch" => self.max_batch = at_least_one(option, &value)?,
            "--max-delay" => self.max_delay = milliseconds(option, &value)?,
            "--queue" => self.queue = at_least_one(option, &value)?,
            "--timeout" => self.timeout = milliseconds(option, &value)?,
            "--max-body" => self.max_body = number(option, &value)?,
            "--max-memory" => self.max_memory = Some(number(option, &value)?),
            "--threads" => self.threads = Some(number(option, &value)?),
            "--grace" => self.grace = milliseconds(option, &value)?,
            _ => return Err(format!("there is no option {option}")),
        }
        Ok(())
    }
}

fn number<T: FromStr>(option: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{option} needs a whole number, not {value:?}"))
}

fn at_least_one(option: &str, value: &str) -> Result<usize, String> {
    match number(option, value)? {
        0 => Err(format!("{option} must be at least 1")),
        count => Ok(count),
    }
}

/// A time of at most 49 days, so that no sum of times overflows.
fn milliseconds(option: &str, value: &str) -> Result<Duration, String> {
    Ok(Duration::from_millis(number::<u32>(option, value)?.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_string))
    }

    #[test]
    fn options_have_values() {
        let options = parsed("--max-batch 8 a.plan --max-delay 20 --threads 2").expect("a plan and options");
        assert_eq!((options.plan.as_str(), options.max_batch, options.threads), ("a.plan", 8, Some(2)));
        assert_eq!(options.max_delay, Duration::from_millis(20));
    }

    #[test]
    fn wrong_lines_are_refused() {
        for (line, said) in [
            ("", "the plan is missing"),
            ("a.plan b.plan", "a server runs one plan"),
            ("a.plan --threads", "--threads needs a value"),
            ("a.plan --threads two", "--threads needs a whole number, not \"two\""),
            ("a.plan --queue 0", "--queue must be at least 1"),
            ("a.plan --speed 3", "there is no option --speed"),
        ] {
            assert_eq!(parsed(line), Err(said.to_string()), "{line}");
        }
    }
}
