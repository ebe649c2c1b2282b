//! Every operator that writes rows writes them in place, on the host and on a GPU: the results equal those of feeding back
//! by hand, a failed run changes nothing, and no copy of a cache takes place.

use candle_plan_memory::buffer;
use serde_json::{json, Value as Json};

use super::*;
use crate::cpu::convert::read_as;
use crate::custom::CustomOps;
use crate::device::Device;
use crate::dtype::DType;
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
}

fn cases() -> Vec<Case> {
    [DType::Float32, DType::Float16, DType::Bfloat16].into_iter().flat_map(cases_of).collect()
}

fn cases_of(dtype: DType) -> [Case; 5] {
    let case = |op: Json, inputs: &[usize], axis, first| Case { dtype, op, inputs: inputs.to_vec(), axis, first };
    let scatter = |circular: bool| json!({"TensorScatter": {"axis": -2, "circular": circular}});
    [
        case(json!({"Concat": {"axis": 2}}), &[1, 0], Some(2), 0),
        case(scatter(false), &[1, 0, 2], None, ROWS),
        case(scatter(true), &[1, 0, 2], None, ROWS),
        case(json!({"AppendRows": {}}), &[1, 0, 2, 3], Some(2), 0),
        case(json!({"AppendRows": {}}), &[1, 0, 2, 3], None, ROWS),
    ]
}

/// Attention of all rows to all keys.
fn attention() -> Json {
    json!({"Attention": {
        "heads": null, "kv_heads": null, "scale": null, "softcap": null, "is_causal": false, "left_window": null,
        "right_window": null, "guard": "Unseeing", "scores": "Product",
    }})
}

impl Case {
    /// The plan: the operator, attention to the result, and a step that fails if `pick` is out of range.
    fn session(&self, device: &Device) -> Session {
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
        ];
        let step = |op: Json, inputs: Json, output: usize| json!({"op": op, "inputs": inputs, "outputs": [output], "origin": 0});
        let plan = json!({
            "main": {
                "values": types.iter().map(|(name, kind)| json!({"name": name, "type": kind})).collect::<Vec<_>>(),
                "inputs": [0, 1, 2, 3, 4],
                "constants": [],
                "steps": [
                    step(self.op.clone(), json!(self.inputs), 5),
                    step(attention(), json!([0, 5, 5]), 6),
                    step(json!({"Gather": {"axis": 3}}), json!([6, 4]), 7),
                ],
                "outputs": [6, 7, 5],
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
        ]
    }
}

fn devices() -> [Device; 2] {
    [Device::Cpu, Device::Gpu(candle_plan_device_emulator::open().expect("enough memory"))]
}

fn numbers(value: &Value) -> (Vec<usize>, Vec<f32>) {
    let array = value.tensor().expect("a tensor");
    (array.dims().to_vec(), read_as(array, &Threads::serial()).expect("numbers"))
}

fn held(state: &State) -> (Vec<usize>, Vec<f32>) {
    numbers(&state.to_host().expect("there is memory")[0].1)
}

fn storage(state: &State) -> usize {
    match &state.values[..] {
        [Some(Value::Grown(grown))] => grown.storage().0.storage().0,
        other => panic!("not a value that changes in place: {other:?}"),
    }
}

#[test]
fn results_equal_feeding_back_by_hand() {
    for (device, case) in devices().iter().flat_map(|device| cases().into_iter().map(move |case| (device, case))) {
        let session = case.session(device);
        let (mut state, mut past) = (case.state(&session), case.first());
        // A prompt, single rows, several rows, and a step back.
        let mut at = 0;
        for (rows, back) in [(5, 0), (1, 0), (1, 0), (1, 0), (3, 0), (1, 4), (1, 0)] {
            if case.first > 0 {
                at -= back;
            }
            let inputs = case.given(rows, at, 1);
            let found = session.run_with(&mut state, inputs.clone(), &Request::default()).expect("it runs");
            let mut all = inputs;
            all.insert(1, past);
            let expected = session.run(all).expect("it runs");
            past = expected[2].clone();
            assert_eq!(found.len(), 2);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(numbers(found), numbers(expected), "{} {at}", case.op);
            }
            assert_eq!(held(&state), numbers(&past), "{} {at}", case.op);
            at += rows;
        }
    }
}

#[test]
fn a_failed_run_changes_nothing() {
    for (device, case) in devices().iter().flat_map(|device| cases().into_iter().map(move |case| (device, case))) {
        let session = case.session(device);
        let mut state = case.state(&session);
        session.run_with(&mut state, case.given(5, 0, 1), &Request::default()).expect("it runs");
        let (before, fork) = (held(&state), state.clone());
        for at in if case.first > 0 { [5, 2] } else { [5, 5] } {
            assert!(session.run_with(&mut state, case.given(1, at, 99), &Request::default()).is_err(), "{}", case.op);
            assert_eq!(held(&state), before, "{} {at}", case.op);
        }
        session.run_with(&mut state, case.given(1, 5, 1), &Request::default()).expect("it runs");
        assert_ne!(held(&state), before);
        assert_eq!(held(&fork), before);
    }
}

#[test]
fn outputs_of_the_state_are_copies() {
    for (device, case) in devices().iter().flat_map(|device| cases().into_iter().map(move |case| (device, case))) {
        let session = case.session(device);
        let mut state = case.state(&session);
        let request = Request { only: Some(&[2]), ..Request::default() };
        for at in 0..3 {
            let found = session.run_with(&mut state, case.given(1, at, 1), &request).expect("it runs");
            assert_eq!(numbers(&found[0]), held(&state), "{} {at}", case.op);
        }
        storage(&state);
    }
}

#[test]
fn no_run_allocates_memory_for_the_whole_cache() {
    const MUCH: usize = 1 << 40;
    for (device, case) in devices().iter().flat_map(|device| cases().into_iter().map(move |case| (device, case))) {
        let session = case.session(device);
        let mut state = case.state(&session);
        let (mut bytes, mut moves, mut last) = (Vec::new(), 0, 0);
        for at in 0..ROWS {
            let inputs = case.given(1, at, 1);
            let allocated = buffer::within(MUCH, || {
                session.run_with(&mut state, inputs, &Request::default()).expect("it runs");
                MUCH - buffer::budget()
            });
            if storage(&state) != last {
                (moves, last) = (moves + 1, storage(&state));
            } else {
                bytes.push((at, allocated));
            }
        }
        assert!(moves <= 6, "{}: {moves} storages for {ROWS} rows", case.op);
        // The scores of attention are the only values that grow.
        let per_row = BATCH * HEADS * size_of::<f32>();
        let (first, most) = (bytes[0], bytes.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0));
        let bound = first.1 + 2 * per_row * ROWS;
        assert!(
            most <= bound && bound < BATCH * HEADS * ROWS * SIZE * size_of::<f32>() / 2,
            "{} of {:?}: {most} bytes, {bound}",
            case.op,
            case.dtype
        );
    }
}
