//! Real requests to a server in its own process. Requests that must meet wait for each other, not for a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::{spawn, JoinHandle};

use serde_json::{json, Value};

/// The plan `float32 x [batch, 4] -> float32 y [batch, 3]`.
const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../plan/tests/plans/rows.plan");
/// Longer than a test.
const HOUR: &str = "3600000";

/// A server, which ends with its test.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(options: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_candle-plan-server"));
        command.args([PLAN, "--listen", "127.0.0.1:0", "--threads", "1"]).args(options).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the server starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect("an address").to_string();
        Server { process, address }
    }

    /// The status, the headers and the body of the answer to a request.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, String, Value) {
        call(&self.address, method, path, body)
    }

    fn run(&self, x: &[f32]) -> Value {
        let (status, _, answer) = self.call("POST", "/run", &request(x));
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Sends a request in another thread.
    fn send(&self, x: &[f32]) -> JoinHandle<(u16, String, Value)> {
        let (address, body) = (self.address.clone(), request(x));
        spawn(move || call(&address, "POST", "/run", &body))
    }

    fn health(&self) -> Value {
        self.call("GET", "/healthz", "").2
    }

    fn wait_for(&self, key: &str, count: u64) {
        while self.health()[key] != count {
            std::thread::yield_now();
        }
    }

    fn terminate(&self) {
        let done = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.process.id())]).status();
        assert!(done.expect("a shell").success());
    }

    /// The exit code of the server.
    fn end(mut self) -> Option<i32> {
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn call(address: &str, method: &str, path: &str, body: &str) -> (u16, String, Value) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    answer_to(address, &(head + body)).expect("an answer")
}

fn answer_to(address: &str, request: &str) -> Option<(u16, String, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    // A server that refuses a body may close the connection before it has read all.
    let _ = stream.write_all(request.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, head.to_lowercase(), serde_json::from_str(body).ok()?))
}

fn request(x: &[f32]) -> String {
    json!({"inputs": {"x": {"shape": [x.len() / 4, 4], "data": x}}}).to_string()
}

/// Numbers in rows that all differ.
fn numbers(seed: usize, rows: usize) -> Vec<f32> {
    (0..rows * 4).map(|at| ((seed * 977 + at * 131) % 1009) as f32 / 7.0 - 72.0).collect()
}

#[test]
fn a_request_has_an_answer() {
    let server = Server::start(&[]);
    let expected = json!({"outputs": {"y": {"shape": [1, 3], "data": [0.0, 0.0, 0.0]}}});
    assert_eq!(server.run(&[0.0; 4]), expected);
    let types = json!({"inputs": {"x": "float32 [batch, 4]"}, "outputs": {"y": "float32 [batch, 3]"}});
    assert_eq!(server.call("GET", "/plan", "").2, types);
    assert_eq!(server.health(), json!({"status": "ok", "waiting": 0, "runs": 1, "answered": 1}));
}

#[test]
fn a_batch_equals_single_runs_bit_by_bit() {
    let single = Server::start(&[]);
    let batched = Server::start(&["--max-batch", "21", "--max-delay", HOUR]);
    let inputs: Vec<Vec<f32>> = (0..6).map(|seed| numbers(seed, seed + 1)).collect();
    let sent: Vec<_> = inputs.iter().map(|x| batched.send(x)).collect();
    let mut first = Vec::new();
    for (x, sent) in inputs.iter().zip(sent) {
        let (status, _, answer) = sent.join().expect("an answer");
        first.push(answer["outputs"]["y"]["data"][0].to_string());
        assert_eq!((status, answer), (200, single.run(x)));
    }
    first.sort();
    first.dedup();
    assert_eq!(first.len(), inputs.len(), "a request with another's rows would not be noticed");
    assert_eq!((&batched.health()["runs"], &single.health()["runs"]), (&json!(1), &json!(6)));
}

#[test]
fn many_requests_at_once_have_their_own_answers() {
    let server = Server::start(&["--max-batch", "8", "--max-delay", "1"]);
    let clients = (0..8).map(|client| {
        let address = server.address.clone();
        spawn(move || {
            for round in 0..10 {
                let x = numbers(client * 10 + round, 1 + round % 3);
                let (status, _, answer) = call(&address, "POST", "/run", &request(&x));
                assert_eq!((status, &answer["outputs"]["y"]["shape"]), (200, &json!([1 + round % 3, 3])));
                let again = call(&address, "POST", "/run", &request(&x)).2;
                assert_eq!(again, answer);
            }
        })
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().expect("right answers"));
    assert_eq!(server.health()["answered"], 160);
}

#[test]
fn wrong_requests_are_refused() {
    let server = Server::start(&["--max-body", "200"]);
    for (method, path, body, status, said) in [
        ("POST", "/run", "{", 400, "the body is not a request: EOF while parsing"),
        ("POST", "/run", r#"{"inputs": {}}"#, 400, r#"input "x": expected float32 [batch, 4], found nothing"#),
        (
            "POST",
            "/run",
            r#"{"inputs": {"z": {"shape": [], "data": [1]}}}"#,
            400,
            r#"input "z": expected one of ["x"], found another name"#,
        ),
        (
            "POST",
            "/run",
            r#"{"inputs": {"x": {"shape": [0, 4], "data": []}, "x": {"shape": [0, 4], "data": []}}}"#,
            400,
            r#"input "x": expected one value, found two"#,
        ),
        (
            "POST",
            "/run",
            r#"{"inputs": {"x": {"shape": [1, 4], "data": [1, 2, 3]}}}"#,
            400,
            r#"input "x": 3 elements do not fill a tensor of shape [1, 4]"#,
        ),
        (
            "POST",
            "/run",
            r#"{"inputs": {"x": {"shape": [1, 3], "data": [1, 2, 3]}}}"#,
            400,
            r#"input "x": expected float32 [batch, 4], found float32 [1, 3]"#,
        ),
        (
            "POST",
            "/run",
            r#"{"inputs": {"x": {"shape": [1], "data": [true]}}}"#,
            400,
            r#"input "x": element 0 is true, which is not a float32"#,
        ),
        (
            "POST",
            "/run",
            r#"{"inputs": {"x": {"shape": [-1], "data": []}}}"#,
            400,
            "the body is not a request: invalid",
        ),
        ("POST", "/run", r#"{"inputs": {}, "other": 1}"#, 400, "the body is not a request: unknown field `other`"),
        ("GET", "/run", "", 405, "/run needs the method POST"),
        ("GET", "/", "", 404, "the paths are /run, /plan and /healthz"),
        ("POST", "/run", &" ".repeat(300), 413, ""),
    ] {
        let (found, _, answer) = server.call(method, path, body);
        let sentence = answer["error"].as_str().expect("a sentence");
        assert!(found == status && sentence.starts_with(said), "{body}: {found} {sentence}");
    }
    assert_eq!(server.health()["status"], "ok");
}

#[test]
fn a_full_queue_says_when_to_try_again() {
    let server = Server::start(&["--max-batch", "2", "--max-delay", HOUR, "--queue", "1"]);
    let first = server.send(&[0.0; 4]);
    server.wait_for("waiting", 1);
    let (status, head, answer) = server.call("POST", "/run", &request(&[0.0; 4]));
    assert_eq!((status, &answer["error"]), (503, &json!("too many requests wait")));
    assert!(head.contains("\r\nretry-after: 1"), "{head}");
    server.terminate();
    assert_eq!(first.join().expect("an answer").0, 200);
}

#[test]
fn a_request_has_a_time_limit() {
    let server = Server::start(&["--max-batch", "2", "--max-delay", HOUR, "--timeout", "20"]);
    let (status, _, answer) = server.call("POST", "/run", &request(&[0.0; 4]));
    assert_eq!((status, &answer["error"]), (504, &json!("the request took longer than 20 ms")));
    server.wait_for("waiting", 0);
    let slow =
        format!("POST /run HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{", server.address);
    assert_eq!(answer_to(&server.address, &slow).expect("an answer").0, 504);
}

#[test]
fn accepted_requests_have_answers_after_sigterm() {
    let server = Server::start(&["--max-batch", "8", "--max-delay", HOUR]);
    let sent: Vec<_> = (0..3).map(|seed| server.send(&numbers(seed, 1))).collect();
    server.wait_for("waiting", 3);
    server.terminate();
    for answer in sent {
        assert_eq!(answer.join().expect("an answer").0, 200);
    }
    let address = server.address.clone();
    assert_eq!(server.end(), Some(0));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_client_that_sends_nothing_does_not_stop_the_end() {
    let server = Server::start(&["--grace", "50"]);
    let mut silent = TcpStream::connect(&server.address).expect("a connection");
    let head = "POST /run HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    silent.write_all(head.as_bytes()).expect("the head");
    let mut line = String::new();
    BufReader::new(&silent).read_line(&mut line).expect("a line");
    assert_eq!(line, "HTTP/1.1 100 Continue\r\n");
    server.terminate();
    assert_eq!(server.end(), Some(1));
}
