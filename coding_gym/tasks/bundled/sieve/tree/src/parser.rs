//! From tokens to a condition: one function for each level of binding.

use crate::lexer::{Kind, Token};
use crate::{Condition, ParseError};

struct Parser {
    tokens: Vec<Token>,
    next: usize,
}

/// Reads a whole condition.
pub(crate) fn parse(tokens: Vec<Token>) -> Result<Condition, ParseError> {
    let mut parser = Parser { tokens, next: 0 };
    let condition = parser.any_of()?;
    match parser.peek() {
        Kind::End => Ok(condition),
        _ => Err(parser.error("expected 'and', 'or' or the end")),
    }
}

impl Parser {
    fn any_of(&mut self) -> Result<Condition, ParseError> {
        let mut found = self.all_of()?;
        while self.takes_word("or") {
            found = Condition::Or(Box::new(found), Box::new(self.all_of()?));
        }
        Ok(found)
    }

    fn all_of(&mut self) -> Result<Condition, ParseError> {
        let mut found = self.negated()?;
        while self.takes_word("and") {
            found = Condition::And(Box::new(found), Box::new(self.negated()?));
        }
        Ok(found)
    }

    fn negated(&mut self) -> Result<Condition, ParseError> {
        if self.takes_word("not") {
            return Ok(Condition::Not(Box::new(self.negated()?)));
        }
        if self.takes(&Kind::Open) {
            let inner = self.any_of()?;
            self.expect(&Kind::Close, "expected ')'")?;
            return Ok(inner);
        }
        self.test()
    }

    fn test(&mut self) -> Result<Condition, ParseError> {
        if self.takes_word("has") {
            return Ok(Condition::Has(self.word("expected a field")?));
        }
        let field = self.word("expected a field")?;
        if self.takes_word("in") {
            return Ok(Condition::OneOf(field, self.list()?));
        }
        match self.peek().clone() {
            Kind::Operator(operator) => {
                self.next += 1;
                Ok(Condition::Test(field, operator, self.value()?))
            }
            _ => Err(self.error("expected an operator")),
        }
    }

    fn list(&mut self) -> Result<Vec<String>, ParseError> {
        self.expect(&Kind::Open, "expected '('")?;
        let mut values = vec![self.value()?];
        while self.takes(&Kind::Comma) {
            values.push(self.value()?);
        }
        self.expect(&Kind::Close, "expected ')'")?;
        Ok(values)
    }

    fn value(&mut self) -> Result<String, ParseError> {
        if let Kind::Text(text) = self.peek().clone() {
            self.next += 1;
            return Ok(text);
        }
        self.word("expected a value")
    }

    fn word(&mut self, message: &str) -> Result<String, ParseError> {
        match self.peek().clone() {
            Kind::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.error(message)),
        }
    }

    fn peek(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    fn takes(&mut self, kind: &Kind) -> bool {
        let is_next = self.peek() == kind;
        self.next += usize::from(is_next);
        is_next
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(&Kind::Word(word.to_string()))
    }

    fn expect(&mut self, kind: &Kind, message: &str) -> Result<(), ParseError> {
        if self.takes(kind) {
            Ok(())
        } else {
            Err(self.error(message))
        }
    }

    fn error(&self, message: &str) -> ParseError {
        ParseError { at: self.tokens[self.next].at, message: message.to_string() }
    }
}
