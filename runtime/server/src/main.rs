//! Serves a plan over HTTP: `cargo run --release -p candle-plan-server -- ../build/demo/digits.plan --max-batch 8`.

#![forbid(unsafe_code)]

mod batch;
mod http;
mod json;
mod numbers;
mod options;
mod queue;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use candle_plan::Session;
use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use options::Options;
use queue::Queue;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("{reason}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Serves the plan until a signal arrives and every accepted request has its answer.
fn serve(options: Options) -> Result<(), String> {
    let session = session(&options).map_err(|reason| format!("{}: {reason}", options.plan))?;
    let queue = Arc::new(Queue::new(options.max_batch, options.max_delay, options.queue));
    let worker = {
        let (session, queue) = (session.clone(), queue.clone());
        std::thread::spawn(move || worker::work(&session, &queue))
    };
    let grace = options.grace;
    let routes = http::routes(session, queue.clone(), &options);
    // One thread reads and writes sockets. Runs and JSON have other threads.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let served = runtime.block_on(listen(&options.listen, routes, queue.clone(), grace));
    queue.close();
    let worked = worker.join().map_err(|_| "the thread of the runs ended early".to_string());
    served.and(worked)
}

/// The session of the plan, if its inputs and outputs can be in JSON, and in batches if the options ask for them.
fn session(options: &Options) -> Result<Arc<Session>, String> {
    let mut builder = Session::builder(&options.plan);
    if let Some(threads) = options.threads {
        builder = builder.threads(threads);
    }
    if let Some(bytes) = options.max_memory {
        builder = builder.max_memory(bytes);
    }
    let session = builder.build().map_err(|error| error.to_string())?;
    json::check(&session)?;
    if options.max_batch > 1 {
        batch::check(&session)?;
    }
    Ok(Arc::new(session))
}

/// Accepts connections until a signal arrives, and then finishes the requests that it has accepted.
async fn listen(address: &str, routes: Router, queue: Arc<Queue>, grace: Duration) -> Result<(), String> {
    let wait_for = |kind| signal(kind).map_err(|error| format!("cannot wait for signals: {error}"));
    let (mut terminate, mut interrupt) = (wait_for(SignalKind::terminate())?, wait_for(SignalKind::interrupt())?);
    let unusable = |error: std::io::Error| format!("{address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(unusable)?;
    println!("listening on {}", listener.local_addr().map_err(unusable)?);
    let ended = async move {
        tokio::select! { _ = terminate.recv() => (), _ = interrupt.recv() => () }
        queue.close();
        std::thread::spawn(move || {
            std::thread::sleep(grace);
            eprintln!("requests did not end within {} ms", grace.as_millis());
            std::process::exit(1);
        });
    };
    axum::serve(listener, routes).with_graceful_shutdown(ended).await.map_err(unusable)
}
