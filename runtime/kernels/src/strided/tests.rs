//! Tests of copies: views are compared with a plain loop.

use super::*;
use crate::uninit::Uninit;

fn expected<T: Word>(source: &[T], view: &View) -> Vec<T> {
    let element = |mut i: usize| {
        let axes = view.dims.iter().zip(&view.strides).rev();
        let at = axes.fold(view.offset as isize, |at, (&dim, &stride)| {
            let index = i % dim;
            i /= dim;
            at + index as isize * stride
        });
        source[at as usize]
    };
    (0..view.len()).map(element).collect()
}

fn check<T: Word>(source: &[T], view: &View) {
    let two = Threads::new(2).expect("two threads");
    for isa in Isa::available() {
        for threads in [&Threads::serial(), &two] {
            let out = Uninit::new(view.len()).overwrite(|out| copy_on(source, view, out, threads, isa));
            assert!(out == expected(source, view), "{view:?} {isa:?} {threads:?} {}", std::any::type_name::<T>());
        }
    }
}

fn check_widths(view: &View) {
    let numbers = || 0..60_000u64;
    check(&numbers().map(|i| (i * 7) as u8).collect::<Vec<_>>(), view);
    check(&numbers().map(|i| i as u16).collect::<Vec<_>>(), view);
    check(&numbers().map(|i| i as u32).collect::<Vec<_>>(), view);
    check(&numbers().collect::<Vec<_>>(), view);
}

#[test]
fn permutations() {
    let cases: [(&[usize], &[usize]); 17] = [
        (&[2, 300, 2], &[2, 1, 0]),
        (&[3, 500], &[1, 0]),
        (&[700, 4], &[1, 0]),
        (&[2, 4, 30, 40], &[0, 2, 3, 1]),
        (&[1, 2, 2, 3, 20, 30], &[0, 3, 4, 1, 5, 2]),
        (&[5, 7], &[1, 0]),
        (&[64, 33], &[1, 0]),
        (&[200, 300], &[1, 0]),
        (&[2, 100, 300], &[0, 2, 1]),
        (&[3, 40, 50, 4], &[0, 3, 1, 2]),
        (&[2, 12, 30, 40], &[0, 2, 1, 3]),
        (&[2, 17, 18, 19], &[3, 2, 1, 0]),
        (&[4, 5, 6, 7, 8], &[2, 4, 0, 3, 1]),
        (&[2, 3, 4, 3, 4, 5], &[0, 1, 3, 5, 2, 4]),
        (&[20, 1, 30, 1, 40], &[4, 1, 2, 3, 0]),
        (&[1, 1], &[1, 0]),
        (&[3, 0, 4], &[2, 1, 0]),
    ];
    for (dims, order) in cases {
        check_widths(&View::contiguous(dims).permute(order));
    }
}

#[test]
fn steps_and_repeats() {
    let cases = [
        View { offset: 59_999, dims: vec![60_000], strides: vec![-1] },
        View { offset: 10, dims: vec![20, 30], strides: vec![300, 2] },
        View { offset: 7, dims: vec![40, 3, 50], strides: vec![0, 1, 0] },
        View { offset: 1000, dims: vec![20, 30, 40], strides: vec![-40, 1, 60] },
        View { offset: 0, dims: vec![5, 5, 5], strides: vec![0, 0, 0] },
        View { offset: 3, dims: vec![], strides: vec![] },
        View { offset: 90_000, dims: vec![2, 0], strides: vec![7, 7] },
    ];
    cases.iter().for_each(check_widths);
}

#[test]
fn overlapping_rows_that_end_with_their_source() {
    for columns in (1..20).chain([40]) {
        for step in [1, 2, 3, 5, 7, 16] {
            for rows in [1, 2, 3, 4, 9, 33] {
                let view = View { offset: 0, dims: vec![rows, columns], strides: vec![step as isize, 1] };
                let length = (rows - 1) * step + columns;
                // The last element of the view is the last one of its source.
                let source: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
                let wide: Vec<u32> = (0..length as u32).collect();
                for view in [view.permute(&[1, 0]), view] {
                    check(&source, &view);
                    check(&wide, &view);
                    assert!(view.fits(length) && !view.fits(length - 1), "{view:?}");
                }
            }
        }
    }
}

#[test]
fn overlapping_windows_that_end_with_their_source() {
    // The windows of an image of three channels: position, channel, row of the window, column of the window.
    let windows = View { offset: 0, dims: vec![4, 3, 3, 5], strides: vec![2, 77, 11, 1] };
    let source: Vec<u32> = (0..3 * 2 + 2 * 77 + 2 * 11 + 5).collect();
    for order in [[0, 1, 2, 3], [1, 2, 3, 0], [3, 0, 1, 2], [2, 3, 1, 0], [1, 3, 2, 0]] {
        check(&source, &windows.permute(&order));
    }
    let runs = [0, 1, 2, 1, 2, 3, 2, 3, 4];
    let mut out = [9; 9];
    copy_runs(&source[..5], 1, &mut out, 3, 3);
    assert_eq!(out, runs);
}

#[test]
fn empty_runs_change_nothing() {
    let mut out = [9u8; 4];
    copy_runs(&[1, 2], 1, &mut out, 2, 0);
    assert_eq!(out, [9; 4]);
}

#[test]
#[should_panic(expected = "leave their source")]
fn runs_that_leave_their_source() {
    copy_runs(&[0u8; 6], 2, &mut [0; 9], 3, 3);
}
