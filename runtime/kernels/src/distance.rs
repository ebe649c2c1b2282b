//! Squared distances between points.

use crate::isa::Isa;
use crate::lane_loops::per_isa;
use crate::threads::Threads;

/// Products of a task, about 20 µs.
const TASK: usize = 1 << 17;

/// Writes the squared distances between the rows of `x [rows, size]` and the columns of `points [size, count]` to
/// `to [rows, count]`. The terms of a sum are added in the order of the coordinates.
///
/// # Panics
/// The slices do not have these lengths.
pub fn squared_distances(isa: Isa, threads: &Threads, x: &[f32], points: &[f32], count: usize, to: &mut [f32]) {
    if count == 0 {
        return;
    }
    let (size, rows) = (points.len() / count, to.len() / count);
    assert!(points.len() == size * count && to.len() == rows * count && x.len() == rows * size);
    let together = (TASK / points.len().max(1)).max(1);
    threads.for_each_chunk(to, together * count, |i, to| {
        for (row, to) in (i * together..).zip(to.chunks_exact_mut(count)) {
            of_row(isa, &x[row * size..][..size], points, to);
        }
    });
}

per_isa! {
    fn of_row(x: &[f32], points: &[f32], to: &mut [f32]) where FMA {
        to.fill(0.0);
        for (x, points) in x.iter().zip(points.chunks_exact(to.len())) {
            for (to, point) in to.iter_mut().zip(points) {
                let difference = x - point;
                *to += difference * difference;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_all_pairs() {
        for (rows, size, count) in [(0, 2, 3), (3, 0, 2), (2, 3, 0), (5, 7, 70), (300, 3, 300)] {
            let x: Vec<f32> = (0..rows * size).map(|i| (i % 13) as f32).collect();
            let points: Vec<f32> = (0..size * count).map(|i| (i % 17) as f32 / 2.0).collect();
            let mut to = vec![f32::NAN; rows * count];
            for threads in [1, 3] {
                let threads = Threads::new(threads).expect("threads start");
                squared_distances(Isa::get(), &threads, &x, &points, count, &mut to);
                for (i, &found) in to.iter().enumerate() {
                    let difference = |k: usize| x[i / count * size + k] - points[k * count + i % count];
                    let expected: f32 = (0..size).map(|k| difference(k) * difference(k)).sum();
                    assert_eq!(found, expected, "{rows} {size} {count} {i}");
                }
            }
        }
    }
}
