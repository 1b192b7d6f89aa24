//! Filters records by a condition that people write; see the README for what it may say.

mod lexer;
mod parser;
mod value;

use std::collections::BTreeMap;
use std::fmt;

use value::{compare, contains};

/// Fields with their texts.
pub type Record = BTreeMap<String, String>;

/// What is wrong with a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The character, counted from 1.
    pub at: usize,
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at character {}", self.message, self.at)
    }
}

impl std::error::Error for ParseError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
}

#[derive(Debug, Clone)]
pub(crate) enum Condition {
    Test(String, Operator, String),
    OneOf(String, Vec<String>),
    Has(String),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

/// A condition that can be asked about records.
#[derive(Debug, Clone)]
pub struct Filter {
    condition: Condition,
}

impl Filter {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Filter, ParseError> {
        let condition = parser::parse(lexer::tokens(text)?)?;
        Ok(Filter { condition })
    }

    /// Whether a record fits.
    pub fn accepts(&self, record: &Record) -> bool {
        holds(&self.condition, record)
    }
}

fn holds(condition: &Condition, record: &Record) -> bool {
    match condition {
        Condition::Test(field, operator, value) => record
            .get(field)
            .map_or(false, |found| test(found, *operator, value)),
        Condition::OneOf(field, values) => record.get(field).map_or(false, |found| {
            values.iter().any(|value| test(found, Operator::Equal, value))
        }),
        Condition::Has(field) => record.contains_key(field),
        Condition::Not(inner) => !holds(inner, record),
        Condition::And(one, two) => holds(one, record) && holds(two, record),
        Condition::Or(one, two) => holds(one, record) || holds(two, record),
    }
}

fn test(found: &str, operator: Operator, value: &str) -> bool {
    let order = compare(found, value);
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::Unequal => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
        Operator::Contains => contains(found, value),
    }
}
