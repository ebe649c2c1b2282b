//! Convolutions with few output positions.

use super::*;

#[test]
fn windows_of_few_positions() {
    let mut source = Draw(19);
    for _ in 0..150 {
        let [kernel, output] = [source.pair(4), source.pair(3)].map(|sizes| sizes.map(|size| size + 1));
        let [strides, dilations] = [source.pair(2), source.pair(2)].map(|sizes| sizes.map(|size| size + 1));
        let [before, after] = [source.pair(6), source.pair(4)].map(|sizes| sizes.map(|size| size as isize - 1));
        // Padding may hide taps or, if it is negative, rows and columns of the image.
        let needed = |a: usize| ((output[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1) as isize;
        let input = [0, 1].map(|a| (needed(a) - before[a] - after[a]).max(0) as usize);
        let shape = Shape { input, output, kernel, strides, dilations, before, ..same(1, 1, 1, 1, 1, 1) };
        let batch = source.one_of(&[1, 1, 3]);
        check(&sized(&mut source, Shape { batch, ..shape }));
    }
    let frames = Shape {
        input: [1, 900],
        output: [1, 4],
        kernel: [1, 256],
        strides: [1, 128],
        before: [0, 40],
        ..same(1, 1, 70, 1, 1, 1)
    };
    check(&frames);
    check(&Shape { before: [0, 0], ..frames });
    check(&same(1, 600, 300, 1, 1, 1));
    check(&Shape { input: [9, 9], ..same(70, 24, 40, 2, 1, 1) });
}

#[test]
fn weights_packed_for_few_positions_compute_many() {
    let few = same(1, 24, 40, 2, 1, 3);
    let row = Shape { input: [1, 3], output: [1, 3], kernel: [1, 3], before: [0, 1], ..same(1, 160, 24, 1, 1, 1) };
    let strided = Shape { input: [1, 6], strides: [1, 2], ..row.clone() };
    for (few, many) in [
        (&few, same(2, 24, 40, 2, 40, 3)),
        (&few, same(700, 24, 40, 2, 2, 3)),
        (&row, Shape { input: [1, 900], output: [1, 900], ..row.clone() }),
        (&strided, Shape { input: [1, 900], output: [1, 450], batch: 3, ..strided.clone() }),
    ] {
        let operands = Operands::of(&many);
        for form in FLOAT {
            let mut results = Vec::new();
            for (blocking, count) in every().flat_map(|blocking| [(blocking, 1), (blocking, 3)]) {
                let case = ConvCase::new(blocking, few, true);
                if form.fits(&case) {
                    let (packed, threads) = (form.pack(&case, &operands.w), Threads::new(count).unwrap());
                    results
                        .push(operands.run(blocking, form.layouts(), &many, |operands| packed.run(&threads, operands)));
                }
            }
            operands.compare(&results, tolerance(*form), &many, &name(*form));
        }
    }
}

#[test]
fn one_position_is_a_matrix_product() {
    for (shape, is_product) in [
        (same(1, 256, 512, 1, 1, 1), true),
        (same(1, 64, 64, 1, 1, 3), true),
        (same(1, 512, 512, 4, 1, 1), true),
        (Shape { input: [1, 6], output: [1, 4], kernel: [1, 3], ..same(1, 256, 512, 1, 1, 1) }, true),
        (Shape { input: [1, 8], output: [1, 8], ..same(1, 128, 512, 1, 1, 1) }, true),
        (Shape { input: [1, 9], output: [1, 9], ..same(1, 128, 512, 1, 1, 1) }, false),
        (same(1, 64, 64, 64, 1, 3), false),
        (same(1, 64, 64, 1, 14, 3), false),
    ] {
        for blocking in every().filter(|blocking| blocking.isa() != Isa::SCALAR) {
            let chosen = planner::fastest_form(&ConvCase::new(blocking, &shape, true), ImageLayout::Rows).unwrap();
            assert_eq!(chosen.name() == "as a matrix product, in rows", is_product, "{blocking:?} {shape:?}");
        }
    }
}
