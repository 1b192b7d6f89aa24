use sieve::{Filter, Record};

fn fits(condition: &str, fields: &[(&str, &str)]) -> bool {
    let record: Record = fields
        .iter()
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    Filter::parse(condition).unwrap().accepts(&record)
}

fn degrees(condition: &str, value: &str) -> bool {
    fits(condition, &[("degrees", value)])
}

#[test]
fn numbers_may_be_negative() {
    assert!(degrees("degrees < 0", "-3"));
    assert!(degrees("degrees > -10", "-3"));
    assert!(degrees("degrees = -3", "-3"));
    assert!(!degrees("degrees < -10", "-3"));
    assert!(degrees("degrees < -9", "-10"));
}

#[test]
fn numbers_may_have_decimals() {
    assert!(degrees("degrees > 2.5", "10"));
    assert!(degrees("degrees < 2.5", "2.25"));
    assert!(degrees("degrees = 2.50", "2.5"));
    assert!(degrees("degrees in (1, 2.0)", "2"));
}

#[test]
fn a_sign_may_be_plus() {
    assert!(degrees("degrees = +4", "4"));
    assert!(degrees("degrees = 0", "-0"));
}

#[test]
fn large_numbers_have_an_order() {
    assert!(degrees("degrees > 30000000000000000000", "200000000000000000000"));
}

#[test]
fn what_is_no_number_is_a_text() {
    assert!(degrees("degrees < b", "10"));
    assert!(degrees("degrees = '1e3'", "1e3"));
    assert!(!degrees("degrees = 1000", "1e3"));
    assert!(degrees("degrees > inf", "nan"));
    assert!(!degrees("degrees = 1.2", "1.2.0"));
    assert!(degrees("degrees != .5", "0.5"));
}

#[test]
fn whole_numbers_are_as_before() {
    assert!(degrees("degrees > 9", "36"));
    assert!(degrees("degrees = 007", "7"));
}

#[test]
fn words_may_have_signs_in_them() {
    assert!(fits("day = 2024-02-19", &[("day", "2024-02-19")]));
    assert!(fits("mail = ada@example.org", &[("mail", "ada@example.org")]));
    assert_eq!(Filter::parse("a = #").unwrap_err().message, "unexpected '#'");
}
