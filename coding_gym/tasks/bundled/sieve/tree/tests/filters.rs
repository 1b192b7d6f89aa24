use sieve::{Filter, Record};

fn ada() -> Record {
    [("name", "Ada Byron"), ("city", "London"), ("age", "36")]
        .into_iter()
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect()
}

fn fits(condition: &str) -> bool {
    Filter::parse(condition).unwrap().accepts(&ada())
}

#[test]
fn a_field_is_compared() {
    assert!(fits("city = London"));
    assert!(!fits("city = london"));
    assert!(fits("city != Oslo"));
}

#[test]
fn whole_numbers_have_an_order() {
    assert!(fits("age > 9"));
    assert!(fits("age <= 36"));
    assert!(!fits("age < 36"));
}

#[test]
fn a_part_is_found_in_any_case() {
    assert!(fits("name ~ byron"));
    assert!(!fits("name ~ lovelace"));
}

#[test]
fn values_may_be_quoted() {
    assert!(fits("name = 'Ada Byron'"));
    assert!(fits("name = \"Ada Byron\""));
}

#[test]
fn conditions_are_joined() {
    assert!(fits("city = Oslo or age = 36"));
    assert!(!fits("city = Oslo and age = 36"));
    assert!(fits("city = Oslo and age = 1 or age = 36"));
    assert!(!fits("not (city = London)"));
}

#[test]
fn a_list_holds_one_of_its_values() {
    assert!(fits("city in (Oslo, London)"));
    assert!(!fits("city in (Oslo, 'New York')"));
}

#[test]
fn a_field_may_be_there() {
    assert!(fits("has age"));
    assert!(!fits("has phone"));
}

#[test]
fn mistakes_have_a_place() {
    let error = Filter::parse("age = ").unwrap_err();
    assert_eq!(error.to_string(), "expected a value at character 7");
    assert_eq!(Filter::parse("(age = 3").unwrap_err().at, 9);
    assert_eq!(Filter::parse("age = 3 4").unwrap_err().at, 9);
    assert_eq!(Filter::parse("name = 'Ada").unwrap_err().at, 8);
}
