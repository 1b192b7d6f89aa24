use sieve::{Filter, Record};

fn fits(condition: &str, fields: &[(&str, &str)]) -> bool {
    let record: Record = fields
        .iter()
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    Filter::parse(condition).unwrap().accepts(&record)
}

#[test]
fn an_apostrophe_is_doubled() {
    assert!(fits("name = 'O''Brien'", &[("name", "O'Brien")]));
    assert!(!fits("name = 'O''Brien'", &[("name", "O''Brien")]));
}

#[test]
fn double_quotes_are_doubled_too() {
    assert!(fits(r#"title = "the ""best"" one""#, &[("title", "the \"best\" one")]));
}

#[test]
fn only_quotes_may_be_meant() {
    assert!(fits("mark = ''''", &[("mark", "'")]));
    assert!(fits("mark = ''", &[("mark", "")]));
}

#[test]
fn the_other_quote_is_as_it_is() {
    assert!(fits("name = \"O'Brien\"", &[("name", "O'Brien")]));
    assert!(fits("title = 'say \"\"'", &[("title", "say \"\"")]));
}

#[test]
fn a_doubled_quote_ends_nothing() {
    let error = Filter::parse("name = 'it''").unwrap_err();
    assert_eq!((error.at, error.message.as_str()), (8, "a text that does not end"));
}
