//! [`Workbench`]: where work is done that would hold up everybody else.
//!
//! A thread of the runtime that computes serves nobody meanwhile. Work that is large for its input, an object of a
//! megabyte say, is polled at the bench: the runtime lets another thread take over what else there was to do. So many
//! are at the bench at a time as there are seats. A seat is taken for one poll only, so nobody holds one while they wait
//! for the store or for a webhook; whoever has to wait for one waits in the line of their own user, and the lines take
//! turns. One user has all seats but one at most: the next who comes need not wait for them.
//!
//! Small work stays where it is and costs nothing more. What is small is for the caller to say, see [`is_light`].

use std::collections::{HashMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

/// What may be worked on without holding up others, in bytes of input: about two milliseconds.
const LIGHT: usize = 64 * 1024;

/// Whether so many bytes are worked on so quickly that nobody notices.
pub const fn is_light(bytes: usize) -> bool {
    bytes <= LIGHT
}

/// A bounded number of seats at which work is done that takes long.
#[derive(Debug)]
pub struct Workbench {
    seats: usize,
    line: Mutex<Line>,
}

/// Who sits, and who waits.
#[derive(Debug, Default)]
struct Line {
    taken: usize,
    /// How many seats each user has.
    held: HashMap<String, usize>,
    /// Who waits, by user, in the order of their turns.
    waiting: VecDeque<(String, VecDeque<oneshot::Sender<Seat>>)>,
}

/// A place at the bench, given back when it is dropped.
#[derive(Debug)]
struct Seat {
    /// `None` if nobody came to take it.
    bench: Option<Arc<Workbench>>,
    user: String,
}

impl Workbench {
    /// A bench with so many seats, but two at least.
    pub fn new(seats: usize) -> Arc<Workbench> {
        Arc::new(Workbench { seats: seats.max(2), line: Mutex::default() })
    }

    /// Does what a user asks for at the bench, whenever it has something to do.
    ///
    /// The future may be dropped at any time: nothing is lost but what it had done so far.
    pub async fn run<F: Future>(self: &Arc<Self>, user: &str, work: F) -> F::Output {
        let mut work = pin!(work);
        loop {
            let seat = self.seat(user).await;
            let polled = poll_fn(|context| Poll::Ready(off_the_workers(|| work.as_mut().poll(context)))).await;
            drop(seat);
            match polled {
                Poll::Ready(output) => return output,
                // Whatever the work waits for wakes this task.
                Poll::Pending => pause().await,
            }
        }
    }

    /// A seat, as soon as it is the user's turn.
    async fn seat(self: &Arc<Self>, user: &str) -> Seat {
        let taken = {
            let mut line = self.line();
            let (sender, receiver) = oneshot::channel();
            match line.waiting.iter_mut().find(|(known, _)| known == user) {
                Some((_, waiting)) => waiting.push_back(sender),
                None => line.waiting.push_back((user.to_owned(), VecDeque::from([sender]))),
            }
            self.hand_out(&mut line);
            receiver
        };
        match taken.await {
            Ok(seat) => seat,
            // Only whoever hands seats out drops the other end, and only once it was used.
            Err(_) => unreachable!("a line ends with a seat"),
        }
    }

    /// Gives free seats to those whose turn it is.
    fn hand_out(self: &Arc<Self>, line: &mut Line) {
        while line.taken < self.seats {
            let share = self.seats - 1;
            let has_turn = |user: &str| line.held.get(user).is_none_or(|held| *held < share);
            let Some(at) = line.waiting.iter().position(|(user, _)| has_turn(user)) else { return };
            let Some((user, mut waiting)) = line.waiting.remove(at) else { return };
            let next = waiting.pop_front();
            if !waiting.is_empty() {
                line.waiting.push_back((user.clone(), waiting));
            }
            let seat = Seat { bench: Some(self.clone()), user: user.clone() };
            match next.map(|next| next.send(seat)) {
                Some(Ok(())) => {
                    line.taken += 1;
                    *line.held.entry(user).or_default() += 1;
                }
                // They have gone. The seat was never theirs, and must not be given back.
                Some(Err(mut seat)) => seat.bench = None,
                None => {}
            }
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().expect("nobody panics while they stand in line")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(bench) = self.bench.take() else { return };
        let mut line = bench.line();
        line.taken -= 1;
        if let Some(held) = line.held.get_mut(&self.user) {
            *held -= 1;
            if *held == 0 {
                line.held.remove(&self.user);
            }
        }
        bench.hand_out(&mut line);
    }
}

/// Computes while another thread takes over what else this one had to do.
pub fn off_the_workers<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // There is no other thread, or nobody to hold up.
        _ => work(),
    }
}

/// Waits until this task is woken.
async fn pause() {
    let mut is_first = true;
    poll_fn(|_| if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_seat_is_only_taken_while_there_is_something_to_do() {
        let bench = Workbench::new(2);
        let (started, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let mut tasks = Vec::new();
        for number in 0..10 {
            let (bench, started, go) = (bench.clone(), started.clone(), go.clone());
            tasks.push(tokio::spawn(async move {
                let work = async {
                    let told = go.notified();
                    started.fetch_add(1, Ordering::Relaxed);
                    told.await;
                    number
                };
                bench.run("jane", work).await
            }));
        }
        // All ten come to their wait although there are two seats.
        while started.load(Ordering::Relaxed) < 10 {
            yield_now().await;
        }
        go.notify_waiters();
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.expect("does not panic"), number);
        }
        assert_eq!(bench.line().taken, 0);
    }

    #[tokio::test]
    async fn users_take_turns_and_nobody_has_every_seat() {
        let bench = Workbench::new(3);
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(bench.seat("jane").await);
        }
        let mut third = Box::pin(bench.seat("jane"));
        assert!(poll_once(&mut third).is_none(), "the last seat is for others");
        let joe = bench.seat("joe").await;

        // Whoever comes last is next if all before them are of one user that had a turn.
        let mut fourth = Box::pin(bench.seat("jane"));
        assert!(poll_once(&mut fourth).is_none());
        let mut ann = Box::pin(bench.seat("ann"));
        assert!(poll_once(&mut ann).is_none());
        held.pop();
        let of_jane = poll_once(&mut third).expect("it was her turn");
        drop(joe);
        assert!(poll_once(&mut fourth).is_none());
        let of_ann = poll_once(&mut ann).expect("it was her turn");
        drop((of_jane, of_ann));
        assert!(poll_once(&mut fourth).is_some());
    }

    #[tokio::test]
    async fn those_who_leave_the_line_take_no_seat_with_them() {
        let bench = Workbench::new(2);
        let (one, two) = (bench.seat("a").await, bench.seat("b").await);
        let mut gone = Box::pin(bench.seat("c"));
        assert!(poll_once(&mut gone).is_none());
        drop(gone);
        let mut given = Box::pin(bench.seat("d"));
        assert!(poll_once(&mut given).is_none());
        // The seat lies ready for somebody who goes without taking it.
        drop(one);
        drop(given);
        drop(two);
        {
            let line = bench.line();
            assert_eq!((line.taken, line.held.len(), line.waiting.len()), (0, 0, 0));
        }
        let _free = (bench.seat("e").await, bench.seat("f").await);
    }

    fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::Pin::new(future).poll(&mut context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}
