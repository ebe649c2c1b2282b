//! Every form on dilated windows, and the choice between them.

use super::*;

/// Dilations up to more than the size of the image, and different ones for the axes.
#[test]
fn random_dilated_windows() {
    let mut source = Draw(19);
    for i in 0..120 {
        let input = source.pair(34).map(|size| size + 1);
        let dilations = [0, 1].map(|_| source.one_of(&[1, 2, 3, 5, 8, 17, 40]));
        let kernel = if i % 2 == 0 { [3, 3] } else { source.pair(5).map(|taps| taps + 1) };
        let strides = [0, 1].map(|_| source.one_of(&[1, 1, 1, 2, 3]));
        let strides = if i % 4 == 0 { [1, 1] } else { strides };
        let reach = [0, 1].map(|a| (kernel[a] - 1) * dilations[a]);
        let pads = [0, 1].map(|a| [0, 1].map(|_| source.one_of(&[0, 1, reach[a] / 2, reach[a] / 2, reach[a]])));
        let padded = [0, 1].map(|a| input[a] + pads[a][0] + pads[a][1]);
        if (0..2).any(|a| padded[a] <= reach[a]) {
            continue;
        }
        let output = [0, 1].map(|a| (padded[a] - reach[a] - 1) / strides[a] + 1);
        let before = pads.map(|[before, _]| before as isize);
        let [channels, outputs] = [[3, 8, 16, 17, 40], [1, 8, 24, 40, 17]].map(|sizes| source.one_of(&sizes));
        let groups = if i % 5 == 0 { channels } else { 1 };
        let outputs = if groups == 1 { outputs } else { channels };
        let shape = same(source.one_of(&[1, 1, 2]), channels, outputs, groups, 1, 1);
        check(&Shape { input, output, kernel, strides, dilations, before, ..shape });
    }
}

#[test]
fn dilated_shapes_of_several_parts_and_tasks() {
    let dilated = |dilations: [usize; 2], shape: Shape| {
        let before = [0, 1].map(|a| ((shape.kernel[a] - 1) * dilations[a] / 2) as isize);
        Shape { dilations, before, ..shape }
    };
    let line = Shape { input: [1, 1100], output: [1, 1100], kernel: [1, 2], ..same(1, 40, 24, 1, 1, 1) };
    for shape in [
        dilated([4, 4], same(1, 40, 70, 1, 41, 3)),
        dilated([9, 2], same(2, 24, 40, 1, 50, 3)),
        dilated([30, 30], same(1, 40, 33, 1, 40, 3)),
        dilated([6, 7], same(1, 300, 30, 1, 21, 3)),
        dilated([3, 8], same(1, 20, 17, 1, 40, 5)),
        dilated([16, 16], same(1, 8, 24, 1, 70, 3)),
        dilated([1, 300], line),
        dilated([9, 9], same(2, 40, 40, 40, 30, 3)),
        dilated([4, 4], same(1, 64, 64, 2, 30, 3)),
    ] {
        check(&shape);
    }
}

#[test]
fn dilated_windows_have_the_forms_of_others() {
    let dilated = |channels: usize, size: usize, dilation: usize| Shape {
        dilations: [dilation; 2],
        before: [dilation as isize; 2],
        ..same(1, channels, channels, 1, size, 3)
    };
    for (shape, form) in [
        (dilated(24, 256, 1), "Winograd F(4, 3), in blocks within the step"),
        (dilated(24, 256, 16), "Winograd F(4, 3), in blocks within the step"),
        (dilated(24, 256, 64), "Winograd F(4, 3), in blocks within the step"),
        (dilated(64, 64, 4), "Winograd F(4, 3), in blocks within the step"),
        // Only the tap in the middle is inside the image.
        (dilated(64, 64, 64), "direct, in blocks within the step"),
        (dilated(4, 256, 1), "direct, in rows"),
        (dilated(4, 256, 32), "direct, in rows"),
    ] {
        for blocking in every().filter(|blocking| blocking.isa() != Isa::SCALAR) {
            let chosen = planner::fastest_form(&ConvCase::new(blocking, &shape, true), ImageLayout::Rows).unwrap();
            assert_eq!(chosen.name(), form, "{blocking:?} {shape:?}");
        }
    }
}
