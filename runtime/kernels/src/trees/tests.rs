use super::*;

/// A number that follows from its place, as if it were random.
fn drawn(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519) >> 7
}

/// A forest of full trees of different depths. Each leaf has a weight for one target, or for two.
fn forest(trees: usize, targets: usize, features: usize) -> Forest<f32> {
    let mut forest = Forest {
        nodes: vec![],
        roots: vec![],
        spans: vec![],
        weights: vec![],
        targets,
        features,
        has_missing: true,
        join: Joining::Add,
    };
    for tree in 0..trees {
        let first = forest.nodes.len() as u32;
        let inner = (1 << (tree % 6)) - 1;
        forest.roots.push(first);
        for i in 0..2 * inner + 1 {
            let (at, value) = (first + i, drawn(forest.nodes.len()));
            let weights = forest.weights.len() as u32;
            let threshold = value as f32 / (1 << 25) as f32;
            let feature = 2 * (value % features as u32) + value / 64 % 2;
            let is_leaf = i >= inner;
            let next = if is_leaf { [at; 2] } else { [first + 2 * i + 1, first + 2 * i + 2] };
            forest.nodes.push(TreeNode { threshold, feature: if is_leaf { 0 } else { feature }, next });
            if targets > 1 {
                for k in 0..if is_leaf { 1 + value % 2 } else { 0 } {
                    forest.weights.push(((value + k) % targets as u32, threshold - k as f32));
                }
                forest.spans.push([weights, forest.weights.len() as u32]);
            }
        }
    }
    forest
}

fn rows(rows: usize, features: usize) -> Vec<f32> {
    let x = (0..rows * features).map(|i| if i % 11 == 3 { f32::NAN } else { drawn(i + 7) as f32 / (1 << 25) as f32 });
    x.collect()
}

/// The sums of a row, one node at a time.
fn plain(forest: &Forest<f32>, row: &[f32]) -> Vec<f64> {
    let mut sums = vec![0.0; forest.targets];
    for &root in &forest.roots {
        let mut at = root as usize;
        while forest.nodes[at].next[0] as usize != at {
            let node = forest.nodes[at];
            let x = row[node.feature as usize / 2];
            let yes = x <= node.threshold || x.is_nan() && node.feature % 2 == 1;
            at = node.next[usize::from(yes)] as usize;
        }
        match forest.spans.get(at) {
            None => sums[0] += f64::from(forest.nodes[at].threshold),
            Some(&[first, end]) => {
                for &(target, weight) in &forest.weights[first as usize..end as usize] {
                    sums[target as usize] += f64::from(weight);
                }
            }
        }
    }
    sums
}

fn scoring(link: Link, rule: Option<ClassRule>) -> Scoring {
    Scoring { divisor: 1.0, base: vec![], link, rule }
}

#[test]
fn rows_arrive_where_single_steps_lead() {
    for (trees, targets, features) in [(1, 1, 1), (7, 1, 3), (200, 1, 5), (9, 3, 4), (150, 4, 2)] {
        let forest = forest(trees, targets, features);
        for count in [0, 1, 3, 8, 129, 300] {
            let x = rows(count, features);
            let expected: Vec<f64> = x.chunks_exact(features).flat_map(|row| plain(&forest, row)).collect();
            for threads in [1, 2, 3] {
                let threads = Threads::new(threads).expect("threads start");
                let mut scores = vec![f32::NAN; count * targets];
                let scoring = scoring(Link::None, None);
                forest.run(&threads, &x, features, &scoring, &mut scores, &mut []);
                for (score, expected) in scores.iter().zip(&expected) {
                    assert!((f64::from(*score) - expected).abs() < 1e-5 * (1.0 + expected.abs()));
                }
            }
        }
    }
}

#[test]
fn sums_do_not_depend_on_threads_or_rows() {
    let (features, count) = (6, 200);
    let forest = forest(3000, 1, features);
    let x = rows(count, features);
    let score = |threads: usize, x: &[f32]| {
        let mut scores = vec![0.0; x.len() / features];
        let threads = Threads::new(threads).expect("threads start");
        forest.run(&threads, x, features, &scoring(Link::None, None), &mut scores, &mut []);
        scores
    };
    let together = score(1, &x);
    for threads in 1..4 {
        assert_eq!(score(threads, &x), together);
        let alone: Vec<f32> = x.chunks(features).take(20).flat_map(|row| score(threads, row)).collect();
        assert_eq!(alone, together[..20]);
    }
}

#[test]
fn smallest_and_largest_weights() {
    let mut forest = forest(70, 3, 4);
    let x = rows(5, 4);
    let all = |forest: &Forest<f32>| {
        let mut scores = vec![0f32; 15];
        forest.run(&Threads::serial(), &x, 4, &scoring(Link::None, None), &mut scores, &mut []);
        scores
    };
    forest.join = Joining::Min;
    let least = all(&forest);
    forest.join = Joining::Max;
    let most = all(&forest);
    assert!(least.iter().zip(&most).all(|(least, most)| least < most), "{least:?} {most:?}");
    assert!(least.iter().all(|x| forest.weights.iter().any(|(_, weight)| weight == x)));
}

#[test]
fn scores_become_classes() {
    let of = |rule, link, base: &[f64], sums: &[Option<f64>]| {
        let mut sums: Vec<_> =
            sums.iter().map(|sum| LeafSum { value: sum.unwrap_or(0.0), is_any: sum.is_some() }).collect();
        let (mut scores, mut class) = (vec![0f64; sums.len()], [0]);
        let scoring = Scoring { base: base.to_vec(), ..scoring(link, Some(rule)) };
        scoring.all(sums.len(), &mut sums, &mut scores, &mut class);
        (scores, class[0])
    };
    use ClassRule::*;
    let is = |found: (Vec<f64>, i64), scores: &[f64], class| {
        assert_eq!(found.1, class);
        assert!(found.0.iter().zip(scores).all(|(found, score)| (found - score).abs() < 1e-6), "{found:?} {scores:?}");
    };
    is(of(Largest, Link::None, &[], &[None, Some(-2.0), Some(-1.0)]), &[0.0, -2.0, -1.0], 2);
    is(of(Largest, Link::None, &[0.0, 0.0, 0.0], &[None, Some(-2.0), Some(-1.0)]), &[0.0, -2.0, -1.0], 0);
    is(of(Probability, Link::None, &[], &[Some(0.6), None]), &[0.4, 0.6], 1);
    is(of(Margin, Link::None, &[-1.0], &[Some(0.6), None]), &[0.4, -0.4], 0);
    is(of(Margin, Link::None, &[0.5, 0.25], &[Some(0.25), None]), &[0.75, 0.0], 1);
    is(of(Probability, Link::Logistic, &[], &[Some(0.3), None]), &[0.425_557_5, 0.574_442_5], 0);
    is(of(Margin, Link::Logistic, &[], &[Some(0.3), None]), &[0.425_557_5, 0.574_442_5], 1);
    is(of(Margin, Link::Softmax, &[], &[None, Some(-0.6)]), &[0.645_656_3, 0.354_343_7], 0);
    is(of(Positive, Link::SoftmaxZero, &[], &[Some(0.0), Some(0.3)]), &[0.0, 1.0], 1);
    is(of(Positive, Link::None, &[], &[Some(0.3), None]), &[-0.3, 0.3], 1);
}

#[test]
fn inverses_of_the_normal_distribution() {
    let mut sums = [0.3, 0.6, 0.5].map(|value| LeafSum { value, is_any: true });
    Link::Probit.apply(&mut sums);
    for (sum, expected) in sums.iter().zip([-0.524_445_9, 0.253_353_5, 0.0]) {
        assert!((sum.value - expected).abs() < 1e-6, "{sum:?}");
    }
}
