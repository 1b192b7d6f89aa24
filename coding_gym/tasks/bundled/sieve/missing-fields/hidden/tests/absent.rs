use sieve::{Filter, Record};

fn fits(condition: &str, fields: &[(&str, &str)]) -> bool {
    let record: Record = fields
        .iter()
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    Filter::parse(condition).unwrap().accepts(&record)
}

const ADA: [(&str, &str); 2] = [("name", "Ada"), ("nick", "")];

#[test]
fn nothing_is_unequal_to_nothing() {
    assert!(!fits("age != 3", &ADA));
    assert!(!fits("age != ''", &ADA));
}

#[test]
fn nothing_is_not_small() {
    assert!(!fits("age < 3", &ADA));
    assert!(!fits("age <= x", &ADA));
    assert!(!fits("age > ''", &ADA));
    assert!(!fits("age >= ''", &ADA));
}

#[test]
fn nothing_is_not_empty() {
    assert!(!fits("age = ''", &ADA));
    assert!(fits("nick = ''", &ADA));
}

#[test]
fn nothing_contains_nothing() {
    assert!(!fits("age ~ ''", &ADA));
    assert!(fits("nick ~ ''", &ADA));
}

#[test]
fn nothing_is_in_no_list() {
    assert!(!fits("age in ('', 3)", &ADA));
    assert!(fits("nick in ('', 3)", &ADA));
}

#[test]
fn the_opposite_is_true() {
    assert!(fits("not age = 3", &ADA));
    assert!(fits("not age != 3", &ADA));
    assert!(fits("not has age and name = Ada", &ADA));
}
