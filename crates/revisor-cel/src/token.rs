//! [`Token`]s, what they are called in messages, and sets of them.

use std::fmt;

/// What a token is. The order is the one in which messages list what is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    End,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Space,
    Comment,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
}

/// The names by which messages call the kinds, in their order.
const NAMES: [&str; 38] = [
    "<EOF>",
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "WHITESPACE",
    "COMMENT",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// A piece of an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The offset of its first character.
    pub(crate) start: u32,
    /// The offset after its last character.
    pub(crate) end: u32,
}

/// A set of kinds, and whether it is also right that nothing more comes of the rule at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenSet(u64);

const NOTHING: u64 = 1 << 63;

impl TokenSet {
    pub(crate) const EMPTY: TokenSet = TokenSet(0);

    pub(crate) const fn of(kinds: &[Kind]) -> TokenSet {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u64;
            index += 1;
        }
        TokenSet(bits)
    }

    pub(crate) const fn and(self, other: TokenSet) -> TokenSet {
        TokenSet(self.0 | other.0)
    }

    /// These, or nothing.
    pub(crate) const fn or_nothing(self) -> TokenSet {
        TokenSet(self.0 | NOTHING)
    }

    pub(crate) const fn without_nothing(self) -> TokenSet {
        TokenSet(self.0 & !NOTHING)
    }

    pub(crate) const fn has_nothing(self) -> bool {
        self.0 & NOTHING != 0
    }

    pub(crate) const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u64) != 0
    }
}

/// As messages list what is expected.
impl fmt::Display for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [] => f.write_str("{}"),
            [one] => f.write_str(one),
            many => write!(f, "{{{}}}", many.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_listed_in_the_order_of_the_kinds() {
        assert_eq!(TokenSet::of(&[Kind::Comma, Kind::RightBracket]).to_string(), "{']', ','}");
        assert_eq!(TokenSet::of(&[Kind::End]).or_nothing().to_string(), "<EOF>");
        assert_eq!(TokenSet::of(&[Kind::EscapedIdentifier]).to_string(), "ESC_IDENTIFIER");
        assert_eq!(TokenSet::EMPTY.to_string(), "{}");
    }
}
