//! Durations as Kubernetes' flags write them: `300ms`, `2s`, `1h30m`.

use std::time::Duration;

/// Reads a duration: numbers with a unit, added up.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("expected a duration such as 300ms, 2s or 1h30m, not {text:?}");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(problem)?;
        let (number, tail) = rest.split_at(digits);
        let units = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(units);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(problem()),
        };
        let number: f64 = number.parse().map_err(|_| problem())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| problem())?;
        total = total.checked_add(part).ok_or_else(problem)?;
        rest = tail;
    }
    if text.is_empty() { Err(problem()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, want) in [
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            ("300ms", Some(300)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("5", None),
            ("", None),
            ("m", None),
            ("5d", None),
            ("-5s", None),
            ("1e300h", None),
        ] {
            assert_eq!(parse_duration(text).ok(), want.map(Duration::from_millis), "{text}");
        }
    }
}
