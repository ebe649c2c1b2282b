//! Every operator that writes rows writes them in place, on the host and on a GPU, in a plan and in a branch of an If: the
//! results equal those of feeding back by hand, a failed run changes nothing, and no copy of a cache takes place.

use candle_plan_memory::buffer;
use serde_json::{json, Value as Json};

use super::*;
use crate::cpu::convert::read_as;
use crate::custom::CustomOps;
use crate::device::Device;
use crate::dtype::{Bool, DType};
use crate::error::ErrorKind;
use crate::executable::Executable;
use crate::kernel::Memory;
use crate::testing::{numbers_of, tensor};

/// The batches of the caches, and the heads of each.
const BATCH: usize = 2;
const HEADS: usize = 3;
/// The rows of a buffer of fixed size.
const ROWS: usize = 64;
/// The size of a vector.
const SIZE: usize = 16;

/// An operator with the inputs `past`, `x`, `at` and `total`, as far as it takes them, and how its cache begins.
struct Case {
    dtype: DType,
    op: Json,
    inputs: Vec<usize>,
    /// The axis of the pair, and the rows of the first value.
    axis: Option<usize>,
    first: usize,
    /// Whether the operator is in a branch. The other one makes a cache of `x` alone, in a run that begins with no rows.
    is_merged: bool,
}

fn cases() -> Vec<Case> {
    [DType::Float32, DType::Float16, DType::Bfloat16].into_iter().flat_map(cases_of).collect()
}

fn cases_of(dtype: DType) -> Vec<Case> {
    let case = |op: Json, inputs: &[usize], axis, first| Case {
        dtype,
        op,
        inputs: inputs.to_vec(),
        axis,
        first,
        is_merged: false,
    };
    let scatter = |circular: bool| json!({"TensorScatter": {"axis": -2, "circular": circular}});
    let concat = || case(json!({"Concat": {"axis": 2}}), &[1, 0], Some(2), 0);
    let append = || case(json!({"AppendRows": {}}), &[1, 0, 2, 3], Some(2), 0);
    vec![
        concat(),
        case(scatter(false), &[1, 0, 2], None, ROWS),
        case(scatter(true), &[1, 0, 2], None, ROWS),
        append(),
        case(json!({"AppendRows": {}}), &[1, 0, 2, 3], None, ROWS),
        Case { is_merged: true, ..concat() },
        Case { is_merged: true, ..append() },
    ]
}

/// Attention of all rows to all keys.
fn attention() -> Json {
    json!({"Attention": {
        "heads": null, "kv_heads": null, "scale": null, "softcap": null, "is_causal": false, "left_window": null,
        "right_window": null, "guard": "Unseeing", "scores": "Product",
    }})
}

fn step(op: Json, inputs: Json, outputs: Json) -> Json {
    json!({"op": op, "inputs": inputs, "outputs": outputs, "origin": 0})
}

impl Case {
    /// The plan: the operator, attention to the result, and a step that fails if `pick` is out of range.
    fn session(&self, device: &Device) -> Session {
        let values = self.values();
        let mut steps = match self.is_merged {
            true => vec![step(self.branches(&values), json!([8, 0, 1, 2, 3]), json!([6, 5]))],
            false => self.steps(),
        };
        steps.push(step(json!({"Gather": {"axis": 3}}), json!([6, 4]), json!([7])));
        let plan = json!({
            "main": {
                "values": values, "inputs": [0, 1, 2, 3, 4, 8], "constants": [], "steps": steps, "outputs": [6, 7, 5],
            },
            "constants": [], "origins": [{"nodes": ["n"], "module": "", "source": ""}], "passes": [],
            "source_sha256": "", "max_memory": null, "metadata": {},
            "state": [{"input": 1, "output": 5, "axis": self.axis}],
        });
        let plan = serde_json::from_value(plan).expect("a plan");
        let executable = Executable::prepare(plan, Vec::new(), device, Memory::Full, &CustomOps::new());
        let executable = Arc::new(executable.expect("it prepares"));
        Session { executable, device: device.clone(), threads: Threads::serial(), constants: None }
    }

    fn values(&self) -> Vec<Json> {
        let rows = self.axis.map_or(json!(ROWS), |_| json!("past"));
        let kind = |dtype: DType, shape: Json| json!({"Tensor": {"dtype": dtype, "shape": shape}});
        let cache = |rows: Json| kind(self.dtype, json!(["batch", HEADS, rows, SIZE]));
        let numbers = |shape: Json| kind(DType::Int64, shape);
        let total = self.axis.map_or(json!(ROWS), |_| json!("total"));
        let types = [
            ("x", cache(json!("new"))),
            ("past", cache(rows)),
            ("at", numbers(json!(["batch"]))),
            ("total", numbers(json!([1]))),
            ("pick", numbers(json!([1]))),
            ("present", cache(total)),
            ("y", cache(json!("new"))),
            ("z", kind(self.dtype, json!(["batch", HEADS, "new", 1]))),
            ("is_cached", kind(DType::Bool, json!([1]))),
        ];
        types.iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect()
    }

    /// The operator, and attention to the result.
    fn steps(&self) -> Vec<Json> {
        vec![step(self.op.clone(), json!(self.inputs), json!([5])), step(attention(), json!([0, 5, 5]), json!([6]))]
    }

    /// A choice between the operator, and a cache of `x` alone.
    fn branches(&self, values: &[Json]) -> Json {
        let block = |steps: Vec<Json>| {
            json!({
                "values": &values[..7], "inputs": [0, 1, 2, 3], "constants": [], "steps": steps, "outputs": [6, 5],
            })
        };
        let negative = step(json!({"Unary": {"function": "Neg"}}), json!([0]), json!([5]));
        let alone = block(vec![negative, step(attention(), json!([0, 5, 5]), json!([6]))]);
        json!({"If": {"then_branch": block(self.steps()), "else_branch": alone}})
    }

    fn state(&self, session: &Session) -> State {
        let values = if self.first > 0 { vec![("past".to_string(), self.first())] } else { Vec::new() };
        session.new_state_from(values, Vec::new()).expect("it has a state")
    }

    fn first(&self) -> Value {
        let dims = [BATCH, HEADS, self.first, SIZE];
        numbers_of(self.dtype, &vec![0.5; dims.iter().product()], &dims).into()
    }

    /// The inputs that a caller gives: `rows` rows, written from row `at` on.
    fn given(&self, rows: usize, at: usize, pick: i64) -> Vec<Value> {
        let numbers: Vec<f64> =
            (0..BATCH * HEADS * rows * SIZE).map(|i| ((i * 7919 + at * 31) % 101) as f64 / 50.0).collect();
        vec![
            numbers_of(self.dtype, &numbers, &[BATCH, HEADS, rows, SIZE]).into(),
            tensor(&[at as i64; BATCH], &[BATCH]),
            tensor(&[(at + rows) as i64], &[1]),
            tensor(&[pick], &[1]),
            tensor(&[Bool(u8::from(at > 0))], &[1]),
        ]
    }

    fn name(&self) -> String {
        format!("{} of {:?}, {}", self.op, self.dtype, if self.is_merged { "in a branch" } else { "alone" })
    }
}

fn devices() -> [Device; 2] {
    [Device::Cpu, Device::Gpu(candle_plan_device_emulator::open().expect("enough memory"))]
}

/// Calls a function with a session of every case on every device.
fn each(mut check: impl FnMut(&Case, &Session)) {
    for (device, case) in devices().iter().flat_map(|device| cases().into_iter().map(move |case| (device, case))) {
        check(&case, &case.session(device));
    }
}

/// The same session with a limit of memory.
fn limited(session: &Session, bytes: usize) -> Session {
    let executable = Arc::new(Executable::limited(session.executable.prepared().clone(), Some(bytes)));
    Session { executable, device: session.device.clone(), threads: Threads::serial(), constants: None }
}

fn numbers(value: &Value) -> (Vec<usize>, Vec<f32>) {
    let array = value.tensor().expect("a tensor");
    (array.dims().to_vec(), read_as(array, &Threads::serial()).expect("numbers"))
}

fn held(state: &State) -> (Vec<usize>, Vec<f32>) {
    numbers(&state.to_host().expect("there is memory")[0].1)
}

/// The address and the bytes of the storage of a value that changes in place.
fn storage(state: &State) -> (usize, usize) {
    match &state.values[..] {
        [Some(Value::Grown(grown))] => grown.storage().0.storage(),
        other => panic!("not a value that changes in place: {other:?}"),
    }
}

fn run(session: &Session, state: &mut State, inputs: Vec<Value>) -> Result<Vec<Value>> {
    session.run_with(state, inputs, &Request::default())
}

#[test]
fn results_equal_feeding_back_by_hand() {
    each(|case, session| {
        for session in [session, &limited(session, 1 << 20)] {
            let (mut state, mut past) = (case.state(session), case.first());
            // A prompt, single rows, several rows, and a step back.
            let mut at = 0;
            for (rows, back) in [(5, 0), (1, 0), (1, 0), (1, 0), (3, 0), (1, 4), (1, 0)] {
                if case.first > 0 {
                    at -= back;
                }
                let inputs = case.given(rows, at, 1);
                let found = run(session, &mut state, inputs.clone()).expect("it runs");
                let mut all = inputs;
                all.insert(1, past);
                let expected = session.run(all).expect("it runs");
                past = expected[2].clone();
                assert_eq!(found.len(), 2);
                for (found, expected) in found.iter().zip(&expected) {
                    assert_eq!(numbers(found), numbers(expected), "{} {at}", case.name());
                }
                assert_eq!(held(&state), numbers(&past), "{} {at}", case.name());
                at += rows;
            }
            storage(&state);
        }
    });
}

#[test]
fn a_failed_run_changes_nothing() {
    each(|case, session| {
        for session in [session, &limited(session, 1 << 20)] {
            let mut state = case.state(session);
            run(session, &mut state, case.given(5, 0, 1)).expect("it runs");
            run(session, &mut state, case.given(1, 5, 1)).expect("it runs");
            let (before, fork) = (held(&state), state.clone());
            for at in if case.first > 0 { [6, 2] } else { [6, 6] } {
                assert!(run(session, &mut state, case.given(1, at, 99)).is_err(), "{}", case.name());
                assert_eq!(held(&state), before, "{} {at}", case.name());
            }
            // A prompt of the other branch fails, too.
            assert!(!case.is_merged || run(session, &mut state, case.given(2, 0, 99)).is_err());
            assert_eq!(held(&state), before, "{}", case.name());
            run(session, &mut state, case.given(1, 6, 1)).expect("it runs");
            assert_ne!(held(&state), before);
            assert_eq!(held(&fork), before, "{}", case.name());
        }
    });
}

#[test]
fn outputs_of_the_state_are_copies() {
    each(|case, session| {
        let mut state = case.state(session);
        let request = Request { only: Some(&[2]), ..Request::default() };
        let mut earlier: Vec<(Value, _)> = Vec::new();
        for at in 0..3 {
            let mut found = session.run_with(&mut state, case.given(1, at, 1), &request).expect("it runs");
            assert_eq!(numbers(&found[0]), held(&state), "{} {at}", case.name());
            earlier.push((found.remove(0), held(&state)));
        }
        assert!(earlier.iter().all(|(value, expected)| numbers(value) == *expected), "{}", case.name());
        storage(&state);
    });
}

#[test]
fn no_run_allocates_memory_for_the_whole_cache() {
    const MUCH: usize = 1 << 40;
    each(|case, session| {
        let mut state = case.state(session);
        run(session, &mut state, case.given(1, 0, 1)).expect("it runs");
        let (mut bytes, mut moves, mut last) = (Vec::new(), 0, 0);
        for at in 1..ROWS {
            let inputs = case.given(1, at, 1);
            let allocated = buffer::within(MUCH, || {
                run(session, &mut state, inputs).expect("it runs");
                MUCH - buffer::budget()
            });
            if storage(&state).0 != last {
                (moves, last) = (moves + 1, storage(&state).0);
            } else {
                bytes.push((at, allocated));
            }
        }
        assert!(moves <= 6, "{}: {moves} storages for {ROWS} rows", case.name());
        // The scores of attention are the only values that grow.
        let per_row = BATCH * HEADS * size_of::<f32>();
        let (first, most) = (bytes[0], bytes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0));
        let bound = first.1 + 2 * per_row * ROWS;
        assert!(
            most <= bound && bound < BATCH * HEADS * ROWS * SIZE * size_of::<f32>() / 2,
            "{}: {most} bytes, {bound}",
            case.name()
        );
    });
}

/// The rows of a cache whose storage has room for more.
const HELD: usize = 50;
/// More bytes than the other values of a run need, and fewer than half of the rows.
const OTHERS: usize = BATCH * HEADS * ROWS * SIZE;

#[test]
fn a_limit_counts_each_storage_once() {
    each(|case, session| {
        let mut state = case.state(session);
        for at in 0..HELD {
            run(session, &mut state, case.given(1, at, 1)).expect("it runs");
        }
        let (address, bytes) = storage(&state);
        let enough = limited(session, bytes + OTHERS);
        run(&enough, &mut state, case.given(1, HELD, 1)).expect("it fits");
        assert_eq!(storage(&state), (address, bytes), "{}", case.name());
        let before = held(&state);
        for limit in [bytes - 1, bytes] {
            let error = run(&limited(session, limit), &mut state, case.given(1, HELD + 1, 1)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Memory, "{}: {error}", case.name());
            assert_eq!((held(&state), storage(&state)), (before.clone(), (address, bytes)), "{}", case.name());
        }
        // A copy for the caller counts beside the storage.
        let request = Request { only: Some(&[2]), ..Request::default() };
        let error = enough.run_with(&mut state, case.given(1, HELD + 1, 1), &request).map(drop);
        assert_eq!(error.is_err(), case.axis.is_some(), "{}: {error:?}", case.name());
    });
}

#[test]
fn little_memory_means_little_spare_capacity() {
    each(|case, session| {
        if case.first > 0 {
            return;
        }
        let mut state = case.state(session);
        run(session, &mut state, case.given(1, 0, 1)).expect("it runs");
        run(session, &mut state, case.given(40, 1, 1)).expect("it runs");
        let (mut fork, (address, _)) = (state.clone(), storage(&state));
        let row = BATCH * HEADS * SIZE * case.dtype.width().expect("whole bytes");
        let limit = limited(session, 2 * 42 * row + OTHERS);
        run(&limit, &mut fork, case.given(1, 41, 1)).expect("it fits without spare capacity");
        let (moved, bytes) = storage(&fork);
        assert!(moved != address && (42 * row..62 * row).contains(&bytes), "{}: {bytes} bytes", case.name());
        let before = held(&state);
        let error = run(&limited(session, 2 * 41 * row), &mut state.clone(), case.given(1, 41, 1)).unwrap_err();
        assert_eq!((error.kind(), held(&state)), (ErrorKind::Memory, before), "{}: {error}", case.name());
    });
}

#[test]
fn a_profile_leaves_the_state_as_it_was() {
    each(|case, session| {
        let mut state = case.state(session);
        run(session, &mut state, case.given(5, 0, 1)).expect("it runs");
        run(session, &mut state, case.given(1, 5, 1)).expect("it runs");
        let before = held(&state);
        for at in if case.first > 0 { [6, 2] } else { [6, 6] } {
            let steps = session.profile_with(&mut state, &case.given(1, at, 1), 3, &|| false).expect("it runs");
            let written = steps.iter().find(|step| case.op.get(step.op).is_some()).expect("the operator");
            let rows = (2 * BATCH * HEADS * SIZE * case.dtype.width().expect("whole bytes")) as u64;
            assert_eq!((written.calls, written.work.map(|work| work.bytes)), (3, Some(3 * rows)), "{}", case.name());
            assert_eq!(held(&state), before, "{} {at}", case.name());
        }
        assert!(session.profile_with(&mut state, &case.given(1, 6, 99), 1, &|| false).is_err());
        assert_eq!(held(&state), before, "{}", case.name());
    });
}
