//! [`Draft`] and [`Entry`]: an encoded object before and after the store has given it a revision.

use std::borrow::Cow;

use bytes::Bytes;
use revisor_object::Shape;
use revisor_version::Revision;

use crate::{ENCRYPTED, Key};

/// An encoded object whose revision is not known yet.
///
/// The bytes hold everything but the revision. Where the object shows it, the text `"resourceVersion":"N",` is
/// spliced in at commit, because only then is N known; the offset says where, and must be followed by another
/// member of the same JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub(crate) bytes: Bytes,
    pub(crate) splice_at: Option<u32>,
    pub(crate) shown_as: Option<Shape>,
}

impl Draft {
    /// Bytes that do not show their revision.
    pub fn opaque(bytes: impl Into<Bytes>) -> Draft {
        Draft { bytes: bytes.into(), splice_at: None, shown_as: None }
    }

    /// Bytes of a JSON object in which the member `resourceVersion` belongs at offset `splice_at`.
    ///
    /// # Panics
    /// If the offset is past the end of the bytes: the encoder that computed it is wrong.
    pub fn showing_revision_at(bytes: impl Into<Bytes>, splice_at: u32) -> Draft {
        let bytes = bytes.into();
        assert!(splice_at as usize <= bytes.len(), "splice offset {splice_at} is past {} bytes", bytes.len());
        Draft { bytes, splice_at: Some(splice_at), shown_as: None }
    }

    /// The same of what is known to be shown in this shape as it is stored: nobody has to find that out.
    pub fn shown_as(self, shape: Shape) -> Draft {
        Draft { shown_as: Some(shape), ..self }
    }

    /// The bytes without the revision.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where the revision goes, if these bytes show it.
    pub fn splice_at(&self) -> Option<u32> {
        self.splice_at
    }

    /// The bytes as they read at `revision`.
    pub fn at_revision(&self, revision: Revision) -> Bytes {
        let Some(at) = self.splice_at else { return self.bytes.clone() };
        let (head, tail) = self.bytes.split_at(at as usize);
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(revision.get());
        let mut spliced = Vec::with_capacity(self.bytes.len() + Entry::MEMBER.len() + digits.len() + 2);
        spliced.extend_from_slice(head);
        spliced.extend_from_slice(Entry::MEMBER.as_bytes());
        spliced.extend_from_slice(digits.as_bytes());
        spliced.extend_from_slice(b"\",");
        spliced.extend_from_slice(tail);
        spliced.into()
    }
}

/// One object as it was stored at one revision. There is one for every object in memory, so it has no room to spare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    key: Key,
    revision: Revision,
    /// The object; of one that cannot be read, why.
    text: Bytes,
    /// The shape in which it is known to be shown as it is stored.
    shown_as: Option<Shape>,
    splice_at: u32,
    shows_revision: bool,
    form: Form,
}

/// What stands behind an entry in a store that keeps objects in another form than they are worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What would be written for it today.
    Current,
    /// Something else that means the same.
    Outdated,
    /// Something that cannot be read.
    Unreadable,
}

/// The bytes of what cannot be read.
static NOTHING: Bytes = Bytes::new();

impl Entry {
    /// What stands before the digits of a spliced revision.
    const MEMBER: &'static str = "\"resourceVersion\":\"";

    /// The entry that `draft` becomes at `revision`.
    pub fn new(key: Key, revision: Revision, draft: &Draft) -> Entry {
        Entry {
            key,
            revision,
            text: draft.at_revision(revision),
            shown_as: draft.shown_as,
            splice_at: draft.splice_at.unwrap_or(0),
            shows_revision: draft.splice_at.is_some(),
            form: Form::Current,
        }
    }

    /// The same of what is stored in another form than it would be today, so that its next write is one even if nothing
    /// changes.
    pub fn outdated(key: Key, revision: Revision, draft: &Draft) -> Entry {
        Entry { form: Form::Outdated, ..Entry::new(key, revision, draft) }
    }

    /// The entry of which is stored what cannot be read, and why. It has no bytes.
    pub fn unreadable(key: Key, revision: Revision, why: impl Into<String>) -> Entry {
        Entry { form: Form::Unreadable, ..Entry::new(key, revision, &Draft::opaque(why.into())) }
    }

    /// Why what is stored cannot be read, if it cannot.
    pub fn problem(&self) -> Option<Cow<'_, str>> {
        (self.form == Form::Unreadable).then(|| String::from_utf8_lossy(&self.text))
    }

    /// Whether it is known that the object is shown in this shape as it is stored. What was not written by this program is
    /// not known.
    pub fn is_shown_as(&self, shape: Shape) -> bool {
        self.shown_as == Some(shape)
    }

    /// Where the object lives.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The write that made this entry.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The encoded object, with its revision where it shows one.
    pub fn bytes(&self) -> &Bytes {
        if self.form == Form::Unreadable { &NOTHING } else { &self.text }
    }

    fn splice_at(&self) -> Option<u32> {
        self.shows_revision.then_some(self.splice_at)
    }

    /// How many bytes the encoded object has without its revision.
    pub fn content_len(&self) -> usize {
        self.around_revision().map_or(self.bytes().len(), |(head, tail)| head.len() + tail.len())
    }

    /// The encoded object without its revision: what it was before the commit.
    pub fn to_draft(&self) -> Draft {
        let Some((head, tail)) = self.around_revision() else { return Draft::opaque(self.bytes().clone()) };
        Draft { bytes: [head, tail].concat().into(), splice_at: self.splice_at(), shown_as: None }
    }

    /// Whether to store `draft` would change nothing: it says the same as this entry, revision apart, and that is stored
    /// as it would be. Does not allocate.
    pub fn same_content(&self, draft: &Draft) -> bool {
        if self.splice_at() != draft.splice_at || self.form != Form::Current {
            return false;
        }
        match self.around_revision() {
            None => self.text == draft.bytes,
            Some((head, tail)) => {
                let (draft_head, draft_tail) = draft.bytes.split_at(head.len());
                head == draft_head && tail == draft_tail
            }
        }
    }

    /// This entry's content as it reads with another revision: the last state of an object, shown by the write
    /// that deleted it or moved it out of a selection.
    pub fn reading_at(&self, revision: Revision) -> Bytes {
        if !self.shows_revision || revision == self.revision {
            return self.bytes().clone();
        }
        self.to_draft().at_revision(revision)
    }

    /// Whether these are the bytes of an object that somebody encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        let (head, tail) = self.around_revision().unwrap_or((self.bytes(), &[]));
        head.iter().chain(tail).take(ENCRYPTED.len()).eq(ENCRYPTED)
    }

    /// What stands before and after the spliced member.
    fn around_revision(&self) -> Option<(&[u8], &[u8])> {
        let at = self.splice_at()? as usize;
        let digits = self.revision.get().ilog10() as usize + 1;
        let end = at + Entry::MEMBER.len() + digits + 2;
        Some((&self.text[..at], &self.text[end..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft::showing_revision_at(&br#"{"metadata":{"name":"a","uid":"u"}}"#[..], 24)
    }

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    #[test]
    fn the_revision_is_spliced_in_and_taken_out_again() {
        let entry = Entry::new(Key::new("/a"), at(120), &draft());
        assert_eq!(&entry.bytes()[..], br#"{"metadata":{"name":"a","resourceVersion":"120","uid":"u"}}"#);
        assert_eq!(entry.to_draft(), draft());
        assert_eq!(&entry.reading_at(at(7))[..], br#"{"metadata":{"name":"a","resourceVersion":"7","uid":"u"}}"#);
    }

    #[test]
    fn same_content_ignores_the_revision_only() {
        let entry = Entry::new(Key::new("/a"), at(99), &draft());
        assert!(entry.same_content(&draft()));
        let other = Draft::showing_revision_at(&br#"{"metadata":{"name":"b","uid":"u"}}"#[..], 24);
        assert!(!entry.same_content(&other));
        let shorter = Draft::showing_revision_at(&br#"{"metadata":{"name":"a","u":"u"}}"#[..], 24);
        assert!(!entry.same_content(&shorter));
    }

    #[test]
    fn what_is_stored_in_another_form_is_not_the_same() {
        let outdated = Entry::outdated(Key::new("/a"), at(99), &draft());
        assert!(!outdated.same_content(&draft()) && outdated.problem().is_none());
        let unreadable = Entry::unreadable(Key::new("/a"), at(99), "it is encrypted");
        assert!(!unreadable.same_content(&Draft::opaque(&b""[..])));
        assert_eq!(unreadable.problem().as_deref(), Some("it is encrypted"));
        assert!(unreadable.bytes().is_empty() && unreadable.content_len() == 0, "the reason is no object");
    }

    #[test]
    fn an_entry_is_small() {
        // With the two counts of an `Arc` it is 88 bytes, and allocators have 96.
        assert_eq!(size_of::<Entry>(), 72);
    }

    #[test]
    fn how_it_is_shown_is_known_of_what_was_written_so() {
        let [one, other] = [1, 2].map(|state| Shape::of_defined(0, state));
        let entry = Entry::new(Key::new("/a"), at(99), &draft().shown_as(one));
        assert!(entry.is_shown_as(one) && !entry.is_shown_as(other));
        assert!(entry.same_content(&draft()) && entry.problem().is_none());
        assert!(
            !Entry::new(Key::new("/a"), at(99), &entry.to_draft()).is_shown_as(one),
            "who writes it has to know it"
        );
    }

    #[test]
    fn opaque_bytes_stay_as_they_are() {
        let entry = Entry::new(Key::new("/a"), at(3), &Draft::opaque(&b"xyz"[..]));
        assert_eq!(&entry.bytes()[..], b"xyz");
        assert_eq!(&entry.reading_at(at(9))[..], b"xyz");
        assert!(entry.same_content(&Draft::opaque(&b"xyz"[..])));
    }
}
