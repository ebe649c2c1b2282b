use super::*;
use crate::isa::Isa;
use crate::threads::Threads;
use crate::vector::pow_in_place;
use Instruction::{Load, Save, Select};
use Operand::{Constant, Input, Saved};

/// A small pseudo-random generator (xorshift), so that failures are reproducible.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn value(&mut self) -> f32 {
        const SPECIAL: [f32; 6] = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0];
        match self.below(20) {
            special @ 0..6 => SPECIAL[special],
            _ => (self.below(20_001) as f32 - 10_000.0) / 1_500.0,
        }
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

const UNARY: [Unary; 22] = [
    Unary::Abs,
    Unary::Neg,
    Unary::Sign,
    Unary::Floor,
    Unary::Round,
    Unary::Sqrt,
    Unary::Reciprocal,
    Unary::Square,
    Unary::Exp,
    Unary::Log,
    Unary::Sin,
    Unary::Tan,
    Unary::Tanh,
    Unary::Erf,
    Unary::Sigmoid,
    Unary::Relu,
    Unary::Not,
    Unary::IsInf { negative: true, positive: false },
    Unary::Swish { alpha: 1.0 },
    Unary::Celu { alpha: 0.7 },
    Unary::Shrink { bias: 0.25, lambd: 0.5 },
    Unary::Clip { min: -1.0, max: 2.0 },
];

const BINARY: [Binary; 18] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Div,
    Binary::Pow,
    Binary::Mod,
    Binary::Fmod,
    Binary::Min,
    Binary::Max,
    Binary::PRelu,
    Binary::Equal,
    Binary::Less,
    Binary::LessOrEqual,
    Binary::Greater,
    Binary::GreaterOrEqual,
    Binary::And,
    Binary::Or,
    Binary::Xor,
];

fn random_program(random: &mut Random, inputs: usize) -> Program {
    let mut saved: Vec<u8> = Vec::new();
    let mut code = vec![Load(Input(0))];
    for _ in 0..1 + random.below(12) {
        let operand = |random: &mut Random| match random.below(4) {
            0 => Constant((random.below(9) as f32 - 4.0) / 2.0),
            1 if !saved.is_empty() => Saved(saved[random.below(saved.len())]),
            _ => Input(random.below(inputs)),
        };
        code.push(match random.below(8) {
            0 => Save(random.below(4) as u8),
            1 => Select(operand(random), operand(random)),
            2..=4 => Instruction::Unary(random.of(&UNARY)),
            5 => Instruction::Reverse(random.of(&BINARY), operand(random)),
            _ => Instruction::Binary(random.of(&BINARY), operand(random)),
        });
        if let Some(Save(slot)) = code.last() {
            saved.push(*slot);
        }
    }
    Program { code }
}

fn truth(value: bool) -> f32 {
    f32::from(u8::from(value))
}

fn binary(function: Binary, x: f32, y: f32) -> f32 {
    match function {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::Div => x / y,
        Binary::Pow => {
            let mut power = [x];
            pow_in_place(Isa::SCALAR, &mut power, &[y]);
            power[0]
        }
        Binary::Mod if x % y == 0.0 => 0f32.copysign(y),
        Binary::Mod if (x % y < 0.0) != (y < 0.0) => x % y + y,
        Binary::Mod | Binary::Fmod => x % y,
        Binary::Min | Binary::Max if x.is_nan() || y.is_nan() => f32::NAN,
        Binary::Min => x.min(y),
        Binary::Max => x.max(y),
        Binary::PRelu => {
            if x < 0.0 {
                x * y
            } else {
                x
            }
        }
        Binary::Equal => truth(x == y),
        Binary::Less => truth(x < y),
        Binary::LessOrEqual => truth(x <= y),
        Binary::Greater => truth(x > y),
        Binary::GreaterOrEqual => truth(x >= y),
        Binary::And => truth(x != 0.0 && y != 0.0),
        Binary::Or => truth(x != 0.0 || y != 0.0),
        Binary::Xor => truth((x != 0.0) != (y != 0.0)),
        other => panic!("{other:?}"),
    }
}

/// Runs a program on one element.
fn evaluate(program: &Program, inputs: &[f32]) -> f32 {
    let (mut acc, mut slots) = (f32::NAN, [f32::NAN; 16]);
    for instruction in &program.code {
        let get = |operand: Operand| match operand {
            Input(i) => inputs[i],
            Constant(value) => value,
            Saved(slot) => slots[usize::from(slot)],
        };
        acc = match *instruction {
            Load(operand) => get(operand),
            Save(slot) => {
                slots[usize::from(slot)] = acc;
                acc
            }
            Instruction::Unary(function) => {
                let mut out = [0.0];
                unary(Isa::SCALAR, function, &[acc], &mut out);
                out[0]
            }
            Instruction::Binary(function, operand) => binary(function, acc, get(operand)),
            Instruction::Reverse(function, operand) => binary(function, get(operand), acc),
            Select(yes, no) => {
                if acc != 0.0 {
                    get(yes)
                } else {
                    get(no)
                }
            }
        };
    }
    acc
}

/// The index of an operand's element for element `position` of the result, by division and remainder.
fn element(result: &[usize], operand: &[usize], mut position: usize) -> usize {
    let (mut offset, mut stride) = (0, 1);
    for axis in (0..result.len()).rev() {
        let index = position % result[axis];
        position /= result[axis];
        if let Some(size) = (axis + operand.len()).checked_sub(result.len()).map(|axis| operand[axis]) {
            offset += index % size * stride;
            stride *= size;
        }
    }
    offset
}

const SHAPES: [&[usize]; 12] = [
    &[5],
    &[200],
    &[3, 70],
    &[2, 3, 4, 5],
    &[1, 4, 100],
    &[70, 3],
    &[2, 65, 2],
    &[300, 1],
    &[2, 3, 5, 16],
    &[11, 16],
    &[5, 300],
    &[20, 64],
];

/// Operands that broadcast to a shape, and their dimensions; the first one has that shape.
fn random_operands(random: &mut Random, shape: &[usize]) -> (Vec<Vec<f32>>, Vec<Vec<usize>>) {
    let mut dims = vec![shape.to_vec()];
    for _ in 0..random.below(4) {
        let part = &shape[random.below(shape.len() + 1)..];
        dims.push(part.iter().map(|&size| if random.below(2) == 0 { 1 } else { size }).collect());
    }
    let data = dims.iter().map(|dims| (0..dims.iter().product()).map(|_| random.value()).collect()).collect();
    (data, dims)
}

#[test]
fn random_programs_equal_their_meaning_element_by_element() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for case in 0..400 {
        let shape = random.of(&SHAPES);
        let length: usize = shape.iter().product();
        let (data, dims) = random_operands(&mut random, shape);
        let program = random_program(&mut random, dims.len());
        program.check(Start::Empty, dims.len()).unwrap();
        let expected: Vec<f32> = (0..length)
            .map(|i| {
                evaluate(&program, &data.iter().zip(&dims).map(|(x, d)| x[element(shape, d, i)]).collect::<Vec<_>>())
            })
            .collect();

        let mut arguments: Vec<Argument> = data.iter().zip(&dims).map(|(x, d)| Argument::Tensor(x, d)).collect();
        for isa in Isa::available() {
            let mut out = vec![7.0; length];
            Bound::new(&program, shape, &arguments).unwrap().run_all(isa, &Threads::serial(), &mut out);
            same(&out, &expected, &format!("case {case} {isa:?} {program:?}"));
        }
        arguments[0] = Argument::Result;
        let bound = Bound::new(&program, shape, &arguments).unwrap();
        let mut out = data[0].clone();
        let cut = random.below(length + 1);
        let (head, tail) = out.split_at_mut(cut);
        bound.run(Isa::get(), cut, tail);
        bound.run(Isa::get(), 0, head);
        same(&out, &expected, &format!("case {case} in place, cut at {cut}: {program:?}"));
    }
}

fn same(out: &[f32], expected: &[f32], what: &str) {
    for (i, (x, y)) in out.iter().zip(expected).enumerate() {
        assert!(x == y || x.is_nan() && y.is_nan(), "{what}: element {i} is {x:e}, not {y:e}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let program = Program { code: vec![Load(Input(0)), Instruction::Binary(Binary::Add, Input(1))] };
    let x = [1.0; 6];
    let cases: &[(&[Argument], Invalid)] = &[
        (&[Argument::Tensor(&x, &[2, 3])], Invalid::Absent(1)),
        (&[Argument::Tensor(&x, &[2, 3]), Argument::Absent], Invalid::Absent(1)),
        (&[Argument::Tensor(&x, &[2, 3]), Argument::Tensor(&x, &[3])], Invalid::Elements(6, vec![3])),
        (
            &[Argument::Tensor(&x, &[2, 3]), Argument::Tensor(&x[..2], &[2])],
            Invalid::Broadcast { operand: vec![2], result: vec![2, 3] },
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(Bound::new(&program, &[2, 3], arguments).unwrap_err(), *expected);
    }
    let unsaved = Program { code: vec![Load(Saved(0))] };
    assert_eq!(Bound::new(&unsaved, &[1], &[]).unwrap_err(), Invalid::Slot { at: 0, slot: 0 });
}

/// Without optimization, every temporary has its own stack space. It must fit the stack of a thread too.
#[test]
fn the_frames_of_any_build_are_small() {
    let code =
        vec![Load(Input(0)), Save(0), Instruction::Binary(Binary::Add, Saved(0)), Instruction::Unary(Unary::Sign)];
    let work = move || {
        let (x, mut out) = ([0.5; 200], [0.0; 200]);
        for isa in Isa::available() {
            let program = Program { code: code.clone() };
            let bound = Bound::new(&program, &[200], &[Argument::Tensor(&x, &[200])]).unwrap();
            bound.run(isa, 0, &mut out);
            same(&out, &[1.0; 200], &format!("{isa:?}"));
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(work).unwrap().join().unwrap();
}
