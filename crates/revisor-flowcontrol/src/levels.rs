//! How many seats each priority level has: by its shares when the configuration changes, and by what levels could use
//! when they lend and borrow.

use crate::allocation::{Wish, divide};
use crate::{PriorityLevel, Queuing, SeatDemand};

/// The part of its seats that one request of a level may take.
const MAX_SEATS_PART: f64 = 0.15;

/// The seats of a level, as it is configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its own.
    pub nominal: usize,
    /// Those that it never lends.
    pub lower: usize,
    /// Its own and those that it may borrow.
    pub upper: usize,
}

/// A level among those that lend and borrow.
#[derive(Debug)]
pub struct Standing<'a> {
    /// Whether its requests are never kept waiting.
    pub is_exempt: bool,
    /// Its seats.
    pub limits: Limits,
    /// What it could use; the period is over.
    pub demand: &'a SeatDemand,
    /// The seats that it has now; replaced.
    pub current: &'a mut usize,
    /// What it was meant to have; replaced.
    pub target: &'a mut f64,
}

/// The seats of all levels, of a server with so many.
pub fn nominal_limits(server: usize, levels: &[&PriorityLevel]) -> Vec<Limits> {
    let all: u64 = levels.iter().map(|level| level.shares.nominal).sum();
    let of = |level: &&PriorityLevel| {
        let share = if all == 0 { 0.0 } else { server as f64 * level.shares.nominal as f64 / all as f64 };
        let nominal = share.ceil() as usize;
        let percent = |percent: u64| (nominal as f64 * percent as f64 / 100.0).round() as usize;
        let borrowing = level.shares.borrowing_limit_percent.map_or(server, percent);
        let borrowing = if level.is_exempt() { server } else { borrowing };
        Limits {
            nominal,
            lower: nominal.saturating_sub(percent(level.shares.lendable_percent)),
            upper: nominal + borrowing,
        }
    };
    levels.iter().map(of).collect()
}

/// How many seats one request of a level may take; zero if it does not say.
pub fn max_seats(level: &PriorityLevel, limits: Limits) -> u64 {
    match level.queuing {
        Queuing::Queue { hand_size, .. } => {
            let part = (limits.nominal as f64 * MAX_SEATS_PART).ceil();
            part.min((limits.nominal / hand_size) as f64).max(1.0) as u64
        }
        _ => 0,
    }
}

/// Divides the seats anew, by what each level could have used; answers the proportion that all get of what they want.
pub fn borrow(levels: &mut [Standing<'_>]) -> f64 {
    let all: usize = levels.iter().map(|level| level.limits.nominal).sum();
    let least_now = |level: &Standing<'_>| {
        let high = level.demand.high_watermark;
        let high = if level.is_exempt { high } else { high.min(level.limits.nominal) };
        level.limits.lower.max(high)
    };
    let exempt: usize = levels.iter().filter(|level| level.is_exempt).map(least_now).sum();
    let remaining = all as i64 - exempt as i64;
    let limited = || levels.iter().filter(|level| !level.is_exempt);
    let lower: i64 = limited().map(|level| level.limits.lower as i64).sum();
    let least: i64 = limited().map(|level| least_now(level) as i64).sum();
    let wish = |level: &Standing<'_>| {
        let least = least_now(level) as f64;
        Wish { least, most: level.limits.upper as f64, wanted: level.demand.smoothed.max(least) }
    };
    let wishes: Vec<Wish> = limited().map(wish).collect();
    let (given, proportion): (Vec<f64>, f64) = if remaining <= lower {
        (limited().map(|level| level.limits.lower as f64).collect(), 0.0)
    } else if remaining <= least {
        let part = (remaining - lower) as f64 / (least - lower) as f64;
        let between = |level: &Standing<'_>| {
            let lower = level.limits.lower as f64;
            lower + ((least_now(level) as f64 - lower) * part).round()
        };
        (limited().map(between).collect(), 0.0)
    } else {
        let unchanged = || (limited().map(|level| *level.current as f64).collect(), 0.0);
        divide(all, &wishes).unwrap_or_else(unchanged)
    };
    let mut given = given.into_iter().zip(wishes);
    for level in levels.iter_mut() {
        if level.is_exempt {
            *level.current = least_now(level);
        } else if let Some((seats, wish)) = given.next() {
            *level.current = seats.round() as usize;
            *level.target = wish.wanted;
        }
    }
    proportion
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dealer, Moment, Shares};

    fn level(name: &str, nominal: u64, lendable_percent: u64) -> PriorityLevel {
        let dealer = Dealer::new(64, 6).expect("can be dealt");
        let queuing = match name {
            "exempt" => Queuing::Exempt,
            "catch-all" => Queuing::Reject,
            _ => Queuing::Queue { queues: 64, dealer, hand_size: 6, length_limit: 50 },
        };
        let shares = Shares { nominal, lendable_percent, borrowing_limit_percent: None };
        PriorityLevel { name: name.to_owned(), uid: String::new(), shares, queuing }
    }

    /// What the original's server has with its usual levels and flags.
    #[test]
    fn the_usual_levels_of_a_usual_server() {
        let levels = [
            level("catch-all", 5, 0),
            level("exempt", 0, 0),
            level("global-default", 20, 50),
            level("leader-election", 10, 0),
            level("node-high", 40, 25),
            level("system", 30, 33),
            level("workload-high", 40, 50),
            level("workload-low", 100, 90),
        ];
        let limits = nominal_limits(600, &levels.iter().collect::<Vec<_>>());
        let got: Vec<(usize, usize)> = limits.iter().map(|limits| (limits.nominal, limits.lower)).collect();
        assert_eq!(got, [(13, 13), (0, 0), (49, 24), (25, 25), (98, 73), (74, 50), (98, 49), (245, 24)]);
        let most: Vec<u64> = levels.iter().zip(&limits).map(|(level, limits)| max_seats(level, *limits)).collect();
        assert_eq!(most, [0, 0, 8, 4, 15, 12, 15, 37]);
    }

    #[test]
    fn who_needs_more_borrows_of_those_who_need_less() {
        let levels = [level("a", 50, 50), level("b", 50, 50)];
        let limits = nominal_limits(100, &levels.iter().collect::<Vec<_>>());
        let second = 1_000_000_000;
        let mut busy = SeatDemand::new(Moment(0));
        busy.set(90, Moment(0));
        busy.adjust(Moment(10 * second));
        let idle = SeatDemand::new(Moment(0));
        let (mut one, mut two, mut targets) = (50, 50, [0.0, 0.0]);
        let [first_target, second_target] = &mut targets;
        let mut standings = [
            Standing { is_exempt: false, limits: limits[0], demand: &busy, current: &mut one, target: first_target },
            Standing { is_exempt: false, limits: limits[1], demand: &idle, current: &mut two, target: second_target },
        ];
        borrow(&mut standings);
        assert_eq!((one, two), (75, 25), "the one that is idle keeps what it never lends");
        assert_eq!(targets[0], 90.0);
    }
}
