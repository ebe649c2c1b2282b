//! States grow in place, and forks and failed runs do not disturb each other.

use super::*;
use crate::kernel::Memory;
use crate::value::Grown;

/// `present_x = Concat(past_x, x)` along axis 0, and a product of both.
const PLAN: &[u8] = include_bytes!("../../tests/plans/state.plan");

fn session(max_memory: Option<usize>) -> Session {
    Session::load(PLAN, "cpu", Some(1), max_memory, Memory::Full).expect("a sound plan")
}

fn rows(count: usize, from: f32) -> Value {
    let numbers = (0..4 * count).map(|i| from + i as f32).collect();
    Array::new(numbers, &[count, 4]).expect("they fill the shape").into()
}

fn run(session: &Session, state: &mut State, x: Value) -> Result<Vec<Value>> {
    session.run_with(state, vec![x], &Request::default())
}

fn grown(state: &State) -> &Grown {
    match &state.values[..] {
        [Some(Value::Grown(grown))] => grown,
        other => panic!("not a value that grows: {other:?}"),
    }
}

fn held(state: &State) -> Vec<f32> {
    let values = state.to_host().expect("there is memory");
    let array = values[0].1.tensor().expect("a tensor");
    assert_eq!(array.dims(), [state.length().expect("it grows"), 4]);
    array.read::<f32>().expect("float32").to_vec()
}

fn numbers(value: Value) -> Vec<f32> {
    value.tensor().and_then(Array::read::<f32>).expect("float32").to_vec()
}

#[test]
fn rows_are_written_behind_the_others() {
    let (session, mut state) = (session(None), session(None).new_state().expect("it has a state"));
    let mut expected = Vec::new();
    let mut storages = Vec::new();
    for step in 0..40 {
        let count = if step == 0 { 20 } else { 1 };
        let x = rows(count, step as f32);
        expected.extend(numbers(x.clone()));
        run(&session, &mut state, x).expect("it runs");
        storages.push(grown(&state).storage().0.storage());
        assert_eq!((state.bytes(), held(&state)), (4 * expected.len(), expected.clone()));
    }
    storages.dedup();
    assert!(storages.len() <= 4, "{} storages for 59 rows", storages.len());
}

#[test]
fn forks_and_failures_leave_the_others_alone() {
    let session = session(None);
    let mut state = session.new_state().expect("it has a state");
    run(&session, &mut state, rows(3, 0.0)).expect("it runs");
    let mut fork = state.clone();
    run(&session, &mut state, rows(1, 50.0)).expect("it runs");
    run(&session, &mut fork, rows(1, 70.0)).expect("it runs");
    assert_eq!((held(&state)[12], held(&fork)[12]), (50.0, 70.0));
    let before = held(&state);
    let wrong = Array::new(vec![0f32; 3], &[1, 3]).expect("three numbers").into();
    assert!(run(&session, &mut state, wrong).is_err());
    let stop: crate::interrupt::Stop = &|| true;
    let request = Request { deadline: Some(std::time::Instant::now()), stop, ..Request::default() };
    let _ = session.run_with(&mut state, vec![rows(1, 0.0)], &request);
    state.truncate(before.len() / 4).expect("at most one row more");
    assert_eq!(held(&state), before);
    state.truncate(2).expect("it has two rows");
    assert_eq!(held(&state), before[..8]);
    run(&session, &mut state, rows(1, 90.0)).expect("it runs");
    assert_eq!(held(&state)[8..], [90.0, 91.0, 92.0, 93.0]);
}

#[test]
fn results_are_the_same_with_a_limit_of_memory() {
    let (free, limited) = (session(None), session(Some(1 << 20)));
    let mut state = free.new_state().expect("it has a state");
    let mut other = limited.new_state().expect("it has a state");
    let only = [0, 1];
    for step in 0..5 {
        let request = Request { only: Some(&only), ..Request::default() };
        let found = free.run_with(&mut state, vec![rows(1, step as f32)], &request).expect("it runs");
        let expected = limited.run_with(&mut other, vec![rows(1, step as f32)], &request).expect("it runs");
        for (one, other) in found.into_iter().zip(expected) {
            assert_eq!(numbers(one), numbers(other));
        }
        grown(&other);
    }
    // Both sessions are of one plan.
    run(&free, &mut other, rows(1, 5.0)).expect("it runs");
    run(&limited, &mut state, rows(1, 5.0)).expect("it runs");
    assert_eq!(held(&state), held(&other));
}

#[test]
fn a_state_after_a_panic_is_refused() {
    let session = session(None);
    let mut state = session.new_state().expect("it has a state");
    state.values.clear();
    assert!(run(&session, &mut state, rows(1, 0.0)).is_err());
    state.reset();
    run(&session, &mut state, rows(1, 0.0)).expect("it runs");
    assert_eq!(state.length(), Some(1));
}
