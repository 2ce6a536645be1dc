//! How a number of seats is divided among levels that want, need and may have different numbers of them.
//!
//! The original's `conc_alloc.go`: everybody gets the same proportion of what they want, unless that is below what they
//! need or above what they may have.

/// What one of them wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) wanted: f64,
}

/// What is wanted is at least this, so that there is a proportion of it.
const MIN_WANTED: f64 = 0.001;

/// How far sums may be off.
const EPSILON: f64 = 0.000_000_1;

/// What everybody gets, and the proportion; `None` where there is no such division.
pub(crate) fn divide(seats: usize, wishes: &[Wish]) -> Option<(Vec<f64>, f64)> {
    let seats = seats as f64;
    let is_sound = |wish: &Wish| wish.least >= 0.0 && wish.wanted >= wish.least && wish.most >= wish.least;
    if !wishes.iter().all(is_sound) {
        return None;
    }
    let (least, most): (f64, f64) =
        wishes.iter().fold((0.0, 0.0), |(least, most), wish| (least + wish.least, most + wish.most));
    if least - seats > EPSILON || seats - most > EPSILON {
        return None;
    }
    if seats == 0.0 {
        return Some((vec![0.0; wishes.len()], 0.0));
    }
    let wanted = |wish: &Wish| wish.wanted.max(MIN_WANTED);
    let get = |proportion: f64| -> Vec<f64> {
        wishes.iter().map(|wish| (proportion * wanted(wish)).min(wish.most).max(wish.least)).collect()
    };
    if seats - most > -EPSILON {
        let proportion = wishes.iter().map(|wish| wish.most / wanted(wish)).fold(0.0, f64::max);
        return Some((get(f64::INFINITY), proportion));
    }
    // What they get grows with the proportion, in straight lines between the places where somebody meets a bound.
    let mut bounds: Vec<f64> =
        wishes.iter().flat_map(|wish| [wish.least, wish.most].map(|b| b / wanted(wish))).collect();
    bounds.sort_by(f64::total_cmp);
    let sum = |proportion: f64| get(proportion).iter().sum::<f64>();
    let mut below = 0.0;
    for bound in bounds {
        if sum(bound) < seats {
            below = bound;
            continue;
        }
        let moving = |wish: &&Wish| {
            let middle = (below + bound) / 2.0 * wanted(wish);
            wish.least < middle && middle < wish.most
        };
        let slope: f64 = wishes.iter().filter(moving).map(wanted).sum();
        let proportion = if slope > 0.0 { below + (seats - sum(below)) / slope } else { bound };
        return Some((get(proportion), proportion));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(least: f64, most: f64, wanted: f64) -> Wish {
        Wish { least, most, wanted }
    }

    #[test]
    fn everybody_gets_their_proportion_within_bounds() {
        for (name, seats, wishes, want) in [
            ("all of it in proportion", 60, vec![wish(0.0, 100.0, 10.0), wish(0.0, 100.0, 20.0)], vec![20.0, 40.0]),
            ("less than is wanted", 15, vec![wish(0.0, 100.0, 10.0), wish(0.0, 100.0, 20.0)], vec![5.0, 10.0]),
            ("one has to have more", 15, vec![wish(8.0, 100.0, 10.0), wish(0.0, 100.0, 20.0)], vec![8.0, 7.0]),
            ("one may not have more", 60, vec![wish(0.0, 12.0, 10.0), wish(0.0, 100.0, 20.0)], vec![12.0, 48.0]),
            ("no more than the least", 11, vec![wish(8.0, 100.0, 10.0), wish(3.0, 100.0, 20.0)], vec![8.0, 3.0]),
            ("all that they may", 20, vec![wish(0.0, 8.0, 1.0), wish(0.0, 12.0, 1.0)], vec![8.0, 12.0]),
            ("nobody wants any", 10, vec![wish(0.0, 10.0, 0.0), wish(0.0, 10.0, 0.0)], vec![5.0, 5.0]),
            ("nothing", 0, vec![wish(0.0, 10.0, 5.0)], vec![0.0]),
        ] {
            let (got, _) = divide(seats, &wishes).expect(name);
            let is_near = got.iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-6);
            assert!(is_near, "{name}: {got:?} instead of {want:?}");
        }
        assert!(divide(5, &[wish(8.0, 9.0, 8.0)]).is_none(), "too few");
        assert!(divide(10, &[wish(8.0, 9.0, 8.0)]).is_none(), "too many");
        assert!(divide(10, &[wish(8.0, 20.0, 7.0)]).is_none(), "wants less than it has to have");
    }
}
