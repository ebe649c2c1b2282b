//! CPU kernels: counts of n-grams.

use std::collections::HashMap;

use candle_plan_kernels::scratch::Scratch;

use super::packed::{HasKernel, Packed};
use super::planned::CpuOperands;
use crate::bail;
use crate::error::{Error, Result};
use crate::kernel::{Call, Kernel};
use crate::ops::tf_idf::TfIdfVectorizer;
use crate::value::{alloc_uninit, copied, list, out_of_memory, scratch, Array, Value};

/// An upper bound on the bytes of a word and its n-gram in a [`Vocabulary`], besides their letters.
const ENTRY: usize = 192;

/// The vocabulary of a pool. Each word has a number, and an n-gram is the sequence of its words' numbers.
pub(super) struct Vocabulary {
    words: HashMap<Word, u32>,
    columns: HashMap<Vec<u32>, usize>,
}

#[derive(PartialEq, Eq, Hash)]
enum Word {
    Number(i64),
    Text(String),
}

impl HasKernel for TfIdfVectorizer {
    fn kernel(&self, operands: &CpuOperands) -> Result<Box<dyn Kernel>> {
        let constants = &operands.constants;
        let packed = match constants.values {
            [_, Some(pool), Some(starts), Some(columns)] => {
                Some(self.vocabulary(pool, starts.tensor()?, columns.tensor()?)?)
            }
            _ => None,
        };
        Ok(Packed::boxed(self, packed))
    }
}

impl Kernel for Packed<TfIdfVectorizer, Option<Vocabulary>> {
    fn run(&self, call: &mut Call) -> Result<Vec<Value>> {
        let (op, packed) = (&self.op, self.packed.as_ref());
        let vocabulary_here;
        let vocabulary = match packed {
            Some(vocabulary) => vocabulary,
            None => {
                vocabulary_here = op.vocabulary(call.value(1)?, call.tensor(2)?, call.tensor(3)?)?;
                &vocabulary_here
            }
        };
        let x = call.value(0)?;
        let Some((&length, rows)) = x.dims()?.split_last() else { bail!("expected [C] or [N, C], found a scalar") };
        let numbers: Vec<Option<u32>> = list(words(x)?.iter().map(|word| vocabulary.words.get(word).copied()))?;
        let dims = [rows, &[op.columns]].concat();
        let mut y = alloc_uninit(&dims)?.fill(0.0);
        if length > 0 && op.columns > 0 {
            for (row, counts) in numbers.chunks_exact(length).zip(y.chunks_exact_mut(op.columns)) {
                op.count(vocabulary, row, counts);
            }
        }
        Ok(vec![Array::new(y, &dims)?.into()])
    }
}

impl TfIdfVectorizer {
    fn vocabulary(&self, pool: &Value, starts: &Array, columns: &Array) -> Result<Vocabulary> {
        let (pool, starts, targets) = (words(pool)?, starts.to_i64()?, columns.to_i64()?);
        let ends = starts.iter().copied().chain([pool.len() as i64]).map(|start| usize::try_from(start).ok());
        let bounds = Scratch::of_up_to(starts.len() + 1, ends.map_while(|end| end));
        if bounds.len() <= starts.len() || !bounds.is_sorted() {
            bail!("{starts:?} are not rising places in a pool of {}", pool.len());
        }
        let (mut numbers, mut columns, mut targets) = (HashMap::new(), HashMap::new(), targets.into_iter());
        scratch::<[u8; ENTRY]>(pool.len())?;
        let full = |_| out_of_memory(&[pool.len()]);
        numbers.try_reserve(pool.len()).map_err(full)?;
        columns.try_reserve(targets.len()).map_err(full)?;
        let numbered = list(pool.into_iter().map(|word| {
            let next = numbers.len() as u32;
            *numbers.entry(word).or_insert(next)
        }))?;
        for (i, range) in bounds.windows(2).enumerate() {
            let grams = numbered[range[0]..range[1]].chunks_exact(i + 1);
            if !grams.remainder().is_empty() {
                bail!("{} words of the pool are no {}-grams", range[1] - range[0], i + 1);
            }
            for gram in grams {
                let column = targets.next().and_then(|column| usize::try_from(column).ok());
                let column = column.filter(|&column| column < self.columns);
                let column = column.ok_or_else(|| Error::op("an n-gram of the pool has no column"))?;
                if (self.shortest..=self.longest).contains(&gram.len()) {
                    columns.insert(copied(gram)?, column);
                }
            }
        }
        Ok(Vocabulary { words: numbers, columns })
    }

    /// Adds the n-grams of a row to the counts.
    fn count(&self, vocabulary: &Vocabulary, row: &[Option<u32>], counts: &mut [f32]) {
        let longest = self.longest.min(row.len());
        let mut gram = Scratch::filled(0, longest);
        for length in self.shortest.max(1)..=longest {
            let gram = &mut gram[..length];
            let skips = if length == 1 { 0 } else { self.max_skips };
            // With a greater distance, an n-gram of two or more words does not fit in the row.
            for distance in 1..=skips.min(row.len()) + 1 {
                let span = (length - 1) * distance;
                for start in 0..row.len().saturating_sub(span) {
                    let words = row[start..=start + span].iter().step_by(distance);
                    let is_known = gram.iter_mut().zip(words).all(|(to, word)| word.map(|word| *to = word).is_some());
                    if let Some(&column) = vocabulary.columns.get(&*gram).filter(|_| is_known) {
                        counts[column] += 1.0;
                    }
                }
            }
        }
    }
}

fn words(value: &Value) -> Result<Vec<Word>> {
    match value {
        Value::Strings(strings) => {
            scratch::<u8>(strings.bytes())?;
            list(strings.data.iter().cloned().map(Word::Text))
        }
        value => list(value.tensor()?.to_i64()?.into_iter().map(Word::Number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, tensor};

    fn counts(op: &TfIdfVectorizer, pool: &[i64], starts: &[i64], columns: &[i64]) -> Result<Vec<f32>> {
        let x = tensor(&[1i32, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8], &[12]);
        let given = [pool, starts, columns].map(|given| Some(tensor(given, &[given.len()])));
        let y = run(op, &[vec![Some(x)], given.to_vec()].concat())?;
        let y = y.tensor()?.read::<f32>()?.to_vec();
        Ok(y)
    }

    #[test]
    fn grams_are_counted_in_their_columns() {
        let op = |shortest, longest, max_skips| TfIdfVectorizer { shortest, longest, max_skips, columns: 4 };
        let (pool, starts) = ([3, 7, 7, 8, 5, 6], [0, 2]);
        for (op, expected) in [
            (op(1, 1, 0), [2., 3., 0., 0.]),
            (op(1, 1, 9), [2., 3., 0., 0.]),
            (op(2, 2, 0), [0., 0., 1., 1.]),
            (op(1, 2, 2), [2., 3., 1., 2.]),
        ] {
            assert_eq!(counts(&op, &pool, &starts, &[1, 0, 3, 2]).expect("a pool"), expected, "{op:?}");
        }
    }

    #[test]
    fn broken_pools_are_refused() {
        let op = TfIdfVectorizer { shortest: 1, longest: 2, max_skips: 0, columns: 2 };
        assert!(counts(&op, &[1, 2, 3], &[0, 1], &[0, 1]).is_ok());
        for (pool, starts, columns) in [
            (&[1i64, 2, 3, 4], &[0i64, 1], &[0i64, 1]),
            (&[1, 2, 3, 4], &[0, 2], &[0, 1]),
            (&[1, 2, 3, 4], &[0, 2], &[0, 1]),
            (&[1, 2, 3, 4], &[-1, 2], &[0, 1]),
            (&[1, 2, 3, 4], &[4, 2], &[0, 1]),
            (&[1, 2, 3, 4], &[2, 2], &[2, 0]),
        ] {
            assert!(counts(&op, pool, starts, columns).is_err(), "{pool:?} {starts:?} {columns:?}");
        }
    }
}
