//! The responses of the server: for each path, and for refused requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::Router;
use candle_plan::{Error, ErrorKind, Session, Type};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::json;
use crate::options::Options;
use crate::queue::{Job, Queue, Refused};

struct Server {
    session: Arc<Session>,
    queue: Arc<Queue>,
    timeout: Duration,
    answered: AtomicU64,
}

/// The paths of the server.
pub fn routes(session: Arc<Session>, queue: Arc<Queue>, options: &Options) -> Router {
    let server = Server { session, queue, timeout: options.timeout, answered: AtomicU64::new(0) };
    Router::new()
        .route("/run", post(run))
        .route("/plan", get(plan))
        .route("/healthz", get(health))
        .fallback(|| async { Refusal::new(StatusCode::NOT_FOUND, "the paths are /run, /plan and /healthz") })
        .method_not_allowed_fallback(|| async {
            Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "/run needs the method POST, and the other paths GET")
        })
        .layer(DefaultBodyLimit::max(options.max_body))
        .with_state(Arc::new(server))
}

/// The outputs for the inputs in the body.
async fn run(State(server): State<Arc<Server>>, request: Request) -> Response {
    let late = format!("the request took longer than {} ms", server.timeout.as_millis());
    let answer = tokio::time::timeout(server.timeout, answer(server.clone(), request)).await;
    let response = match answer {
        Ok(Ok(body)) => body_of(StatusCode::OK, body),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => Refusal::new(StatusCode::GATEWAY_TIMEOUT, late).into_response(),
    };
    server.answered.fetch_add(1, Ordering::Relaxed);
    response
}

async fn answer(server: Arc<Server>, request: Request) -> Result<Vec<u8>, Refusal> {
    let arrived = Instant::now();
    let body = Bytes::from_request(request, &()).await;
    let body = body.map_err(|rejected| Refusal::new(rejected.status(), rejected.body_text()))?;
    let session = server.session.clone();
    let inputs = elsewhere(move || json::inputs(&session, &body)).await?;
    let inputs = inputs.map_err(|reason| Refusal::new(StatusCode::BAD_REQUEST, reason))?;
    let (reply, outputs) = oneshot::channel();
    let job = Job { inputs, arrived, deadline: arrived + server.timeout, reply };
    server.queue.push(job).map_err(|refused| match refused {
        Refused::Full => busy("too many requests wait"),
        Refused::Closed => busy("the server ends"),
    })?;
    let outputs = outputs.await.map_err(|_| busy("the server ends"))?.map_err(failed)?;
    let body = elsewhere(move || json::outputs(&server.session, &outputs)).await?;
    body.map_err(|reason| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, reason))
}

/// Calls a function that takes long in another thread.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    spawn_blocking(work).await.map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// The names and types of the inputs and outputs.
async fn plan(State(server): State<Arc<Server>>) -> Response {
    let types = |(name, kind): (&str, &Type)| (name.to_string(), kind.to_string().into());
    let inputs: serde_json::Map<_, _> = server.session.inputs().map(types).collect();
    let outputs: serde_json::Map<_, _> = server.session.outputs().map(types).collect();
    body_of(StatusCode::OK, json!({"inputs": inputs, "outputs": outputs}).to_string())
}

/// Whether the server takes requests, how many wait, and how many it has answered.
async fn health(State(server): State<Arc<Server>>) -> Response {
    let (status, code) = match server.queue.is_closed() {
        true => ("ending", StatusCode::SERVICE_UNAVAILABLE),
        false => ("ok", StatusCode::OK),
    };
    let answered = server.answered.load(Ordering::Relaxed);
    let numbers =
        json!({"status": status, "waiting": server.queue.len(), "runs": server.queue.runs(), "answered": answered});
    body_of(code, numbers.to_string())
}

/// The answer to a request that a run refused or could not finish.
fn failed(error: Error) -> Refusal {
    let code = match error.kind() {
        ErrorKind::Input | ErrorKind::Op | ErrorKind::Limit => StatusCode::BAD_REQUEST,
        ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    Refusal::new(code, error.to_string())
}

/// The answer of a server whose queue is full.
fn busy(reason: &str) -> Refusal {
    Refusal { retry: true, ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, reason) }
}

/// A sentence instead of outputs.
struct Refusal {
    code: StatusCode,
    reason: String,
    /// Whether the same request may succeed later.
    retry: bool,
}

impl Refusal {
    fn new(code: StatusCode, reason: impl Into<String>) -> Refusal {
        Refusal { code, reason: reason.into(), retry: false }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = body_of(self.code, json!({"error": self.reason}).to_string());
        if self.retry {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

fn body_of(code: StatusCode, body: impl Into<axum::body::Body>) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], body.into()).into_response()
}
