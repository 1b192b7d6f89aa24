//! From a text to its tokens.

use crate::{Operator, ParseError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A word or a number, as it was written.
    Word(String),
    /// A text in quotes, without them.
    Text(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Its first character, counted from 1.
    pub at: usize,
}

const OPERATORS: [(&str, Operator); 7] = [
    // The longer ones first.
    ("!=", Operator::Unequal),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("~", Operator::Contains),
];

/// Returns all tokens, the last of which is `Kind::End`.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        if characters[at].is_whitespace() {
            at += 1;
            continue;
        }
        let (kind, length) = token(&characters[at..], at + 1)?;
        found.push(Token { kind, at: at + 1 });
        at += length;
    }
    found.push(Token { kind: Kind::End, at: characters.len() + 1 });
    Ok(found)
}

/// Returns the token that a text begins with, and its length.
fn token(text: &[char], at: usize) -> Result<(Kind, usize), ParseError> {
    match text[0] {
        '(' => return Ok((Kind::Open, 1)),
        ')' => return Ok((Kind::Close, 1)),
        ',' => return Ok((Kind::Comma, 1)),
        quote @ ('\'' | '"') => return quoted(text, quote, at),
        _ => {}
    }
    for (written, operator) in OPERATORS {
        if text.iter().copied().take(written.len()).eq(written.chars()) {
            return Ok((Kind::Operator(operator), written.len()));
        }
    }
    let length = text.iter().take_while(|one| is_part_of_word(**one)).count();
    if length == 0 {
        let message = format!("unexpected {:?}", text[0]);
        return Err(ParseError { at, message });
    }
    Ok((Kind::Word(text[..length].iter().collect()), length))
}

fn is_part_of_word(one: char) -> bool {
    one.is_alphanumeric() || "_-+.:/@".contains(one)
}

fn quoted(text: &[char], quote: char, at: usize) -> Result<(Kind, usize), ParseError> {
    let mut value = String::new();
    let mut index = 1;
    while index < text.len() {
        if text[index] != quote {
            value.push(text[index]);
            index += 1;
        } else if text.get(index + 1) == Some(&quote) {
            value.push(quote);
            index += 2;
        } else {
            return Ok((Kind::Text(value), index + 1));
        }
    }
    Err(ParseError { at, message: "a text that does not end".to_string() })
}
