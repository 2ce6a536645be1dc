//! [`TokenFile`]: the tokens of `--token-auth-file` and whom each of them stands for.
//!
//! The format is the original's: a record per token of `token,user,uid` and, optionally, the groups as one quoted
//! field: `token,user,uid,"group1,group2"`. The header that a token arrives in is not read here, but in
//! `authenticator.rs`.

mod records;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use self::records::{BadQuote, Records};
use crate::{Claims, Identity, credential_file};

/// Far above any real file; a wrong path must not fill the memory.
const MAX_BYTES: u64 = 16 << 20;

/// Bearer tokens and whom they stand for.
///
/// The tokens themselves are not kept, but their SHA-256 digests, and these are what is looked up. How long a
/// lookup takes depends on digests only, from which a client that guesses cannot work its way towards a token.
#[derive(Clone, Default)]
pub struct TokenFile {
    holders: HashMap<[u8; 32], Identity>,
}

/// Something about a token file that its owner should know, and that does not keep it from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileWarning {
    /// A record without a token, which is skipped.
    #[error("the token on line {line} is empty")]
    EmptyToken {
        /// Where the record starts.
        line: usize,
    },
    /// A token that an earlier record has too; the later one counts.
    #[error("the token on line {line} was given before")]
    DuplicateToken {
        /// Where the later record starts.
        line: usize,
    },
}

/// Why a token file cannot be used. No variant holds text of the file.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("token file {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The file was read and makes no sense.
    #[error("token file {}, {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and on which line.
        problem: String,
    },
}

impl TokenFile {
    /// Reads the file at `path` and logs what its owner should know about it.
    pub fn load(path: &Path) -> Result<TokenFile, TokenFileError> {
        let text = credential_file::read(path, MAX_BYTES)
            .map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
        let (tokens, warnings) =
            TokenFile::parse(&text).map_err(|problem| TokenFileError::Malformed { path: path.to_owned(), problem })?;
        for warning in warnings {
            tracing::warn!(file = %path.display(), "{warning}");
        }
        Ok(tokens)
    }

    /// Reads `text`. An error says what is wrong and on which line.
    pub fn parse(text: &str) -> Result<(TokenFile, Vec<TokenFileWarning>), String> {
        let mut tokens = TokenFile::default();
        let mut warnings = Vec::new();
        for record in Records::new(text) {
            let record = record.map_err(describe)?;
            let line = record.line;
            let [token, name, uid, rest @ ..] = record.fields.as_slice() else {
                return Err(format!(
                    "line {line}: there must be at least 3 columns (token, user name, user uid), found {}",
                    record.fields.len()
                ));
            };
            if token.is_empty() {
                warnings.push(TokenFileWarning::EmptyToken { line });
                continue;
            }
            let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let uid = Some(uid.clone()).filter(|uid| !uid.is_empty());
            let holder = Identity::authenticated(Claims { name: name.clone(), uid, groups, extra: Vec::new() });
            if tokens.holders.insert(digest(token.as_bytes()), holder).is_some() {
                warnings.push(TokenFileWarning::DuplicateToken { line });
            }
        }
        Ok((tokens, warnings))
    }

    /// Whom `token` stands for.
    pub fn holder(&self, token: &[u8]) -> Option<&Identity> {
        self.holders.get(&digest(token))
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.holders.len()
    }

    /// Whether there is no token at all.
    pub fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }
}

/// Says how many tokens there are and nothing else: even a digest helps who wants to guess a weak token.
impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("tokens", &self.len()).finish_non_exhaustive()
    }
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn describe(problem: BadQuote) -> String {
    match problem {
        BadQuote::Bare { line } => format!("line {line}: there is a quote in a field that does not start with one"),
        BadQuote::Stray { line } => format!("line {line}: a quoted field does not end with its closing quote"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_identities() {
        for (case, text, token, want) in [
            ("three columns", "t1,bob,7", "t1", Some(("bob", Some("7"), &["system:authenticated"][..]))),
            ("no uid", "t1,bob,", "t1", Some(("bob", None, &["system:authenticated"]))),
            ("one group", "t1,bob,7,dev", "t1", Some(("bob", Some("7"), &["dev", "system:authenticated"]))),
            (
                "quoted groups, spaces kept",
                "t1,bob,7,\"dev, ops\"",
                "t1",
                Some(("bob", Some("7"), &["dev", " ops", "system:authenticated"])),
            ),
            ("empty fourth column", "t1,bob,7,", "t1", Some(("bob", Some("7"), &["", "system:authenticated"]))),
            (
                "fifth column ignored",
                "t1,bob,7,dev,ops",
                "t1",
                Some(("bob", Some("7"), &["dev", "system:authenticated"])),
            ),
            ("quoted everything", r#""t,1","bo""b","7""#, "t,1", Some(("bo\"b", Some("7"), &["system:authenticated"]))),
            ("spaces belong to the token", " t1,bob,7", "t1", None),
            ("case matters", "t1,bob,7", "T1", None),
            ("a prefix is not enough", "t1,bob,7", "t", None),
            ("never the empty token", ",bob,7", "", None),
            ("the later wins", "t1,bob,7\nt1,eve,8", "t1", Some(("eve", Some("8"), &["system:authenticated"]))),
        ] {
            let (tokens, _) = TokenFile::parse(text).expect(case);
            let got = tokens.holder(token.as_bytes());
            assert_eq!(got.map(|who| (who.name(), who.uid())), want.map(|(name, uid, _)| (name, uid)), "{case}");
            if let (Some(got), Some((_, _, groups))) = (got, want) {
                assert_eq!(got.groups(), groups, "{case}");
            }
        }
    }

    #[test]
    fn oddities_are_told_and_tolerated() {
        let (tokens, warnings) = TokenFile::parse("t1,a,1\n\n,b,2\nt1,c,3\nt2,d,4\n").expect("the text is valid");
        let want = [TokenFileWarning::EmptyToken { line: 3 }, TokenFileWarning::DuplicateToken { line: 4 }];
        assert_eq!((tokens.len(), warnings.as_slice()), (2, &want[..]));
    }

    #[test]
    fn errors_name_the_line_and_never_the_token() {
        for (text, want) in [
            ("t1,bob", "line 1: there must be at least 3 columns (token, user name, user uid), found 2"),
            ("t1,a,1\n\nsecret", "line 3: there must be at least 3 columns (token, user name, user uid), found 1"),
            ("t1,a,1\nsec\"ret,b,2", "line 2: there is a quote in a field that does not start with one"),
            ("t1,a,1\n\"secret,b,2", "line 2: a quoted field does not end with its closing quote"),
        ] {
            assert_eq!(TokenFile::parse(text).expect_err("the text is broken"), want);
        }
    }

    #[test]
    fn a_file_is_named_in_errors_and_its_tokens_are_not_shown() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tokens.csv");
        let error = TokenFile::load(&path).expect_err("there is no file");
        assert_eq!(error.to_string(), format!("token file {} cannot be read", path.display()));
        std::fs::write(&path, "secret,bob").expect("the folder can be written");
        let error = TokenFile::load(&path).expect_err("a column is missing");
        assert!(error.to_string().contains("tokens.csv, line 1:"), "{error}");
        assert!(!format!("{error:?}").contains("secret"));
        std::fs::write(&path, "secret,bob,1").expect("the folder can be written");
        let tokens = TokenFile::load(&path).expect("the file is valid");
        assert_eq!(format!("{tokens:?}"), "TokenFile { tokens: 1, .. }");
    }
}
