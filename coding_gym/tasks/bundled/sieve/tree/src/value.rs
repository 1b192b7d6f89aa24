//! How values compare.

use std::cmp::Ordering;

/// Numbers compare as numbers, everything else as texts.
pub fn compare(one: &str, two: &str) -> Ordering {
    match (number(one), number(two)) {
        (Some(first), Some(second)) => first.total_cmp(&second),
        _ => one.cmp(two),
    }
}

/// Whether a text contains another one, whatever their case.
pub fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// A number as people write it: a sign, digits, and decimals behind a point.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_plain = digits.starts_with(|one: char| one.is_ascii_digit())
        && digits.chars().all(|one| one.is_ascii_digit() || one == '.');
    let value: f64 = if is_plain { text.parse().ok()? } else { return None };
    Some(value + 0.0) // -0 is 0
}
