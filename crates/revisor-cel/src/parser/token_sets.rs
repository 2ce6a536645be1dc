//! Sets of tokens that the rules of the grammar begin with, go on with and end with.

use crate::token::{Kind, TokenSet};

/// What an expression without operators begins with, or with a minus.
pub(super) const PRIMARY: TokenSet = TokenSet::of(&[
    Kind::LeftBracket,
    Kind::LeftBrace,
    Kind::LeftParen,
    Kind::Dot,
    Kind::Minus,
    Kind::True,
    Kind::False,
    Kind::Null,
    Kind::Float,
    Kind::Int,
    Kind::Uint,
    Kind::String,
    Kind::Bytes,
    Kind::Identifier,
]);
/// What an expression begins with.
pub(super) const EXPR: TokenSet = PRIMARY.and(TokenSet::of(&[Kind::Exclamation]));
pub(super) const NOTHING: TokenSet = TokenSet::EMPTY.or_nothing();
pub(super) const RELATIONS: TokenSet = TokenSet::of(&[
    Kind::Equals,
    Kind::NotEquals,
    Kind::In,
    Kind::Less,
    Kind::LessEquals,
    Kind::GreaterEquals,
    Kind::Greater,
]);
pub(super) const PRODUCTS: TokenSet = TokenSet::of(&[Kind::Star, Kind::Slash, Kind::Percent]);
pub(super) const SUMS: TokenSet = TokenSet::of(&[Kind::Plus, Kind::Minus]);
pub(super) const MEMBERS: TokenSet = TokenSet::of(&[Kind::Dot, Kind::LeftBracket]);
pub(super) const QUESTION: TokenSet = TokenSet::of(&[Kind::Question]);
pub(super) const FIELD_NAME: TokenSet = TokenSet::of(&[Kind::Identifier, Kind::EscapedIdentifier]);
pub(super) const FIELD: TokenSet = FIELD_NAME.and(QUESTION);
pub(super) const OPTIONAL_EXPR: TokenSet = EXPR.and(QUESTION);
pub(super) const COMMA: TokenSet = TokenSet::of(&[Kind::Comma]);
pub(super) const COLON: TokenSet = TokenSet::of(&[Kind::Colon]);
pub(super) const CLOSING_PAREN: TokenSet = TokenSet::of(&[Kind::RightParen]);
pub(super) const CLOSING_BRACKET: TokenSet = TokenSet::of(&[Kind::RightBracket]);
pub(super) const CLOSING_BRACE: TokenSet = TokenSet::of(&[Kind::RightBrace]);
