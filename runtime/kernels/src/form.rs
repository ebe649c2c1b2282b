//! Forms: the algorithms with which a kernel can compute a step, and the choice of the cheapest one.

/// A form of a computation. A `Case` holds the facts that decide the form.
pub(crate) trait Form<Case>: Sync {
    /// The form's name for a case that fits.
    fn name(&self, case: &Case) -> String;

    /// Whether the form can compute the case.
    fn fits(&self, case: &Case) -> bool;

    /// The expected time of a case that fits, on one thread. An instruction on a vector of `lanes` numbers costs
    /// `lanes / 16`.
    fn cost(&self, case: &Case) -> f64;
}

/// Returns the cheapest form that fits; of two forms with equal costs, the first. `None` if no form fits.
pub(crate) fn cheapest<'f, Case, F: Form<Case> + ?Sized>(forms: &[&'f F], case: &Case) -> Option<&'f F> {
    least(forms.iter().copied().filter(|form| form.fits(case)), |form| form.cost(case))
}

/// Returns the item of the least cost; of two items with equal costs, the first. The cost of a single item is not asked.
pub(crate) fn least<T>(mut items: impl Iterator<Item = T>, cost: impl Fn(&T) -> f64) -> Option<T> {
    let first = items.next()?;
    match items.next() {
        // The usual case of a packed operand: there is nothing to compare.
        None => Some(first),
        Some(second) => {
            let costs = [first, second].into_iter().chain(items).map(|item| (cost(&item), item));
            costs.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, item)| item)
        }
    }
}

/// Returns every form that fits, by name, with its cost.
pub(crate) fn listed<Case, F: Form<Case> + ?Sized>(forms: &[&F], case: &Case) -> Vec<(String, f64)> {
    forms.iter().filter(|form| form.fits(case)).map(|form| (form.name(case), form.cost(case))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form of numbers from the first one on, at the second one's cost.
    struct From(u32, f64);

    impl Form<u32> for From {
        fn name(&self, case: &u32) -> String {
            format!("{case} from {}", self.0)
        }

        fn fits(&self, case: &u32) -> bool {
            *case >= self.0
        }

        fn cost(&self, case: &u32) -> f64 {
            assert!(*case > 1, "a single form needs no cost");
            self.1
        }
    }

    #[test]
    fn the_first_of_the_cheapest_forms_is_chosen() {
        let forms: &[&From] = &[&From(1, 3.0), &From(2, 2.0), &From(3, 1.0), &From(4, 1.0)];
        let chosen = |case: u32| cheapest(forms, &case).map(|form| form.name(&case));
        assert_eq!(chosen(0), None);
        for (case, expected) in [(1, "1 from 1"), (2, "2 from 2"), (3, "3 from 3"), (4, "4 from 3")] {
            assert_eq!(chosen(case).as_deref(), Some(expected));
        }
        assert_eq!(listed(forms, &2), [("2 from 1".to_string(), 3.0), ("2 from 2".to_string(), 2.0)]);
    }
}
