//! [`Path`]: how a value is reached from a variable.

use std::cell::RefCell;
use std::rc::Rc;

/// The steps from a variable to what is in it.
///
/// Paths that grow from one another share their steps as long as there is room for more, and the room doubles when it
/// is used up. So of two paths that grow by one step from the same path, the later may overwrite the last step of the
/// earlier. That is no virtue, but which definitions are accepted depends on it: estimates have to be what they are
/// everywhere else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path {
    shared: Rc<RefCell<Shared>>,
    length: usize,
}

#[derive(Debug, Default)]
struct Shared {
    steps: Vec<Rc<str>>,
    room: usize,
}

impl Path {
    /// The path with one more step.
    pub(crate) fn then(&self, step: &str) -> Path {
        let step: Rc<str> = step.into();
        let length = self.length + 1;
        let mut shared = self.shared.borrow_mut();
        if length <= shared.room {
            match shared.steps.get_mut(self.length) {
                Some(taken) => *taken = step,
                None => shared.steps.push(step),
            }
            drop(shared);
            return Path { shared: Rc::clone(&self.shared), length };
        }
        let room = (shared.room * 2).max(1);
        let mut steps = Vec::with_capacity(room);
        steps.extend_from_slice(&shared.steps[..self.length]);
        steps.push(step);
        drop(shared);
        Path { shared: Rc::new(RefCell::new(Shared { steps, room })), length }
    }

    /// The same path with steps of its own.
    pub(crate) fn apart(&self) -> Path {
        let steps = self.shared.borrow().steps[..self.length].to_vec();
        Path { shared: Rc::new(RefCell::new(Shared { steps, room: self.length })), length: self.length }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Goes along the path, from what its first steps are, which are skipped, to what the last one leads to.
    pub(crate) fn follow<T>(&self, from: T, skipped: usize, mut step: impl FnMut(T, &str) -> Option<T>) -> Option<T> {
        let shared = self.shared.borrow();
        shared.steps[..self.length].iter().skip(skipped).try_fold(from, |at, name| step(at, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(path: &Path) -> String {
        path.follow(String::new(), 1, |so_far, step| Some(format!("{so_far}/{step}"))).unwrap_or_default()
    }

    #[test]
    fn the_later_of_two_steps_stands_where_there_is_room() {
        let three = Path::default().then("self").then("a").then("b");
        let (one, other) = (three.then("c"), three.then("d"));
        assert_eq!((steps(&one), steps(&other)), ("/a/b/d".to_string(), "/a/b/d".to_string()));
        let (longer, another) = (one.then("e"), one.then("f"));
        assert_eq!((steps(&longer), steps(&another)), ("/a/b/d/e".to_string(), "/a/b/d/f".to_string()));
        assert_eq!(steps(&three), "/a/b");
        assert!(Path::default().is_empty());
    }
}
