//! Continue tokens, which come back from clients.

use revisor_object::{ContinueToken, ListScope, TokenSealer};
use revisor_version::Revision;

/// Two laws. A text that opens is the very text that its token is sealed as, so there is one text per token. And what
/// was sealed opens again, but not for another list, and not with any one character changed.
pub(super) fn open(data: &[u8]) {
    let sealer = TokenSealer::new([7; 32]);
    let scope = ListScope::new("pods", Some("default"));
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(token) = sealer.open(text, scope) {
        assert_eq!(sealer.seal(&token), text);
    }

    // The seal keeps a search from getting any further, so what lies behind it is reached by sealing first.
    let number = data.first().copied().map(u64::from);
    let token = ContinueToken {
        revision: number.and_then(Revision::new),
        start_after: text.to_owned(),
        remaining: number.filter(|number| number % 2 == 0),
        scope,
    };
    let sealed = sealer.seal(&token);
    assert_eq!(sealer.open(&sealed, scope), Ok(token));
    assert!(sealer.open(&sealed, ListScope::new("pods", None)).is_err());
    let at = data.len() % sealed.len();
    let changed = if sealed.as_bytes()[at] == b'A' { "B" } else { "A" };
    let forged = format!("{}{changed}{}", &sealed[..at], &sealed[at + 1..]);
    assert!(sealer.open(&forged, scope).is_err(), "{forged}");
}
