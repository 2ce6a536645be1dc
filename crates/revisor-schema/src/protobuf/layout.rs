//! [`Layout`]: where the fields of a type stand in its message, by number.

use crate::Field;

/// The members of a message, in the order of their numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Layout {
    pub(super) members: Vec<Member>,
}

/// One member of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// A field of the type, by its place among them.
    Field(usize),
    /// A message whose fields are fields of the type: JSON shows them beside the others.
    Embedded(Layout),
}

impl Layout {
    /// That of a type without a form in protobuf.
    pub(crate) const NOTHING: Layout = Layout { members: Vec::new() };

    /// The layout of a type with these fields. Those that have no number are not in it.
    pub(crate) fn of(fields: &[Field]) -> Layout {
        let mut layout = Layout::default();
        for (at, field) in fields.iter().enumerate() {
            if let Some(number) = &field.number {
                layout.insert(&number.0, at);
            }
        }
        layout
    }

    fn insert(&mut self, path: &[u32], field: usize) {
        let Some((number, rest)) = path.split_first() else { return };
        let at = match self.members.binary_search_by_key(number, |member| member.number) {
            Ok(at) => at,
            Err(at) => {
                let content =
                    if rest.is_empty() { Content::Field(field) } else { Content::Embedded(Layout::default()) };
                self.members.insert(at, Member { number: *number, content });
                at
            }
        };
        if let Content::Embedded(layout) = &mut self.members[at].content {
            layout.insert(rest, field);
        }
    }

    /// The member with this number.
    pub(super) fn member(&self, number: i32) -> Option<&Content> {
        let number = u32::try_from(number).ok()?;
        // Most messages have their numbers in a row.
        let guess = self.members.get(number.wrapping_sub(1) as usize).filter(|member| member.number == number);
        let found = guess.or_else(|| {
            self.members.binary_search_by_key(&number, |member| member.number).ok().map(|at| &self.members[at])
        });
        found.map(|member| &member.content)
    }
}
