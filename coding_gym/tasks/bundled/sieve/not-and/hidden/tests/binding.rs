use sieve::{Filter, Record};

fn fits(condition: &str, fields: &[(&str, &str)]) -> bool {
    let record: Record = fields
        .iter()
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    Filter::parse(condition).unwrap().accepts(&record)
}

/// Whether a condition on a, b and c is what a function says, for every record of them.
fn same(condition: &str, meant: fn(bool, bool, bool) -> bool) {
    for bits in 0..8 {
        let [a, b, c] = [1, 2, 4].map(|bit| bits & bit != 0);
        let text = |is_set: bool| if is_set { "1" } else { "0" };
        let fields = [("a", text(a)), ("b", text(b)), ("c", text(c))];
        assert_eq!(fits(condition, &fields), meant(a, b, c), "{condition} for {fields:?}");
    }
}

#[test]
fn not_binds_tighter_than_and() {
    same("not a = 1 and b = 1", |a, b, _| !a && b);
    same("b = 1 and not a = 1 and c = 1", |a, b, c| b && !a && c);
}

#[test]
fn not_may_be_repeated() {
    same("not not a = 1 and not b = 1", |a, b, _| a && !b);
}

#[test]
fn the_first_and_the_last_are_negated() {
    same("not a = 1 and not b = 1 and not c = 1", |a, b, c| !a && !b && !c);
}

#[test]
fn brackets_bind_tightest() {
    same("not (a = 1 and b = 1) and c = 1", |a, b, c| !(a && b) && c);
}

#[test]
fn not_binds_tighter_than_or() {
    same("not a = 1 or b = 1", |a, b, _| !a || b);
    same("not (a = 1 or b = 1)", |a, b, _| !(a || b));
}

#[test]
fn and_binds_tighter_than_or() {
    same("a = 1 or b = 1 and c = 1", |a, b, c| a || b && c);
    same("(a = 1 or b = 1) and c = 1", |a, b, c| (a || b) && c);
}
