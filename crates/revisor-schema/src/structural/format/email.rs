//! Addresses of mail: `a@b`, `Name <a@b>`, with quoted texts and comments as RFC 5322 has them.

/// Whether `text` is one address, with or without a name before it and comments around it.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.address(false).is_some() && reader.rest.is_empty()
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn address(&mut self, is_in_group: bool) -> Option<()> {
        self.skip_spaces();
        let start = self.rest;
        if self.plain_address().is_some() {
            self.skip()?;
            if self.rest.is_empty() || (is_in_group && self.rest.starts_with(';')) {
                return Some(());
            }
        }
        self.rest = start;
        // A name, and the address in angle brackets behind it; or one alone in a group.
        while !self.rest.starts_with(['<', ':']) {
            match self.rest.chars().next()? {
                '"' => self.quoted()?,
                _ => {
                    let word = self.atom()?;
                    if !has_known_charset(word) {
                        return None;
                    }
                }
            }
            self.skip()?;
        }
        if self.rest.starts_with(':') {
            if is_in_group || self.rest.len() == start.len() {
                return None;
            }
            self.take(':')?;
            self.address(true)?;
            self.take(';')?;
            return self.skip();
        }
        self.take('<')?;
        self.skip_spaces();
        self.plain_address()?;
        self.take('>')?;
        self.skip()
    }

    fn plain_address(&mut self) -> Option<()> {
        match self.rest.chars().next()? {
            '"' => self.quoted()?,
            _ => {
                let local = self.atom()?;
                if !is_dotted(local) {
                    return None;
                }
            }
        }
        self.take('@')?;
        self.skip_spaces();
        if self.rest.starts_with('[') {
            let end = self.rest.find(']')?;
            let address = &self.rest[1..end];
            self.rest = &self.rest[end + 1..];
            let address = address.strip_prefix("IPv6:").unwrap_or(address);
            return address.parse::<core::net::IpAddr>().ok().map(|_| ());
        }
        let domain = self.atom()?;
        is_dotted(domain).then_some(())
    }

    fn atom(&mut self) -> Option<&'t str> {
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || c == '.' || !c.is_ascii();
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(length);
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    fn quoted(&mut self) -> Option<()> {
        let mut characters = self.rest.char_indices().skip(1);
        let mut is_empty = true;
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return (!is_empty).then_some(());
                }
                '\\' => {
                    characters.next()?;
                }
                '\r' | '\n' => return None,
                other if (other.is_ascii_control() && other != '\t') => return None,
                _ => {}
            }
            is_empty = false;
        }
        None
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips white space and comments, which may nest.
    fn skip(&mut self) -> Option<()> {
        loop {
            self.skip_spaces();
            if !self.rest.starts_with('(') {
                return Some(());
            }
            let mut depth = 0_u32;
            let mut characters = self.rest.char_indices();
            let end = loop {
                match characters.next()? {
                    (_, '(') => depth += 1,
                    (at, ')') if depth == 1 => break at + 1,
                    (_, ')') => depth -= 1,
                    (_, '\\') => {
                        characters.next()?;
                    }
                    _ => {}
                }
            };
            self.rest = &self.rest[end..];
        }
    }

    fn take(&mut self, character: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(character)?;
        Some(())
    }
}

/// Whether a word that is encoded, as `=?utf-8?q?x?=`, is so in a character set that is known.
fn has_known_charset(word: &str) -> bool {
    let Some(encoded) = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?=")) else { return true };
    match encoded.split('?').collect::<Vec<_>>()[..] {
        [charset, "q" | "Q" | "b" | "B", _] => {
            ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
        }
        _ => true,
    }
}

/// Whether dots stand between parts only.
fn is_dotted(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty())
}
