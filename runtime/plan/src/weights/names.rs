//! Names that are similar to a wrong one.

/// The most similar names that a message lists.
const SHOWN: usize = 3;

/// The known names that are most similar to `name`, the most similar first.
pub fn similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let most = name.chars().count() / 3 + 1;
    let is_as_long = |other: &&str| other.chars().count().abs_diff(name.chars().count()) <= most;
    let mut found: Vec<(usize, &str)> = known.filter(is_as_long).map(|other| (distance(name, other), other)).collect();
    found.retain(|(distance, _)| *distance <= most);
    found.sort();
    found.into_iter().take(SHOWN).map(|(_, other)| other).collect()
}

/// The number of characters to insert, delete or replace to get from one text to the other (Levenshtein's distance).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.chars().enumerate() {
        let mut corner = above;
        row[0] = above + 1;
        for (at, &next) in other.iter().enumerate() {
            let replaced = corner + usize::from(letter != next);
            corner = row[at + 1];
            row[at + 1] = replaced.min(corner + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_changed_characters() {
        for (one, other, expected) in [("", "", 0), ("weight", "weight", 0), ("weights 2", "weight", 3), ("a", "", 1)] {
            assert_eq!((distance(one, other), distance(other, one)), (expected, expected), "{one} {other}");
        }
    }

    #[test]
    fn the_most_similar_names_come_first() {
        let known = ["head.weight", "norm.bias", "stem.weight", "x"];
        assert_eq!(similar("head.weights", known.into_iter()), ["head.weight", "stem.weight"]);
        assert!(similar("unrelated", known.into_iter()).is_empty());
    }
}
