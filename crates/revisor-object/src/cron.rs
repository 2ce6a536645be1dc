//! Cron schedules: is this text one, and if not, why.
//!
//! The rules and sentences are those of the cron library that Kubernetes uses: five fields, names of months and
//! weekdays, ranges, steps, `@`-descriptors, and a time zone in front. When a schedule is due is not decided here.

use crate::atoi::atoi;
use crate::duration::Duration;
use crate::time_zone;

/// Checks a schedule.
///
/// ```
/// use revisor_object::check_cron;
/// assert_eq!(check_cron("*/5 9-17 * * mon-fri"), Ok(()));
/// assert_eq!(check_cron("@fortnightly").unwrap_err().to_string(), "unrecognized descriptor: @fortnightly");
/// ```
///
/// # Errors
///
/// What is wrong with it, the first thing only.
pub fn check_cron(schedule: &str) -> Result<(), CronError> {
    if schedule.is_empty() {
        return fail("empty spec string");
    }
    let mut rest = schedule;
    if let Some(zoned) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        let Some((zone, after)) = zoned.split_once(' ') else {
            // The library panics here, and the API server shows what the panic said.
            return fail("invalid schedule format: runtime error: slice bounds out of range [:-1]");
        };
        if let Some(problem) = time_zone::load_problem(zone) {
            return fail(format!("provided bad location {zone}: {problem}"));
        }
        rest = after.trim();
    }
    if rest.starts_with('@') {
        return check_descriptor(rest);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (want, found) = (FIELDS.len(), fields.len());
        return fail(format!("expected exactly {want} fields, found {found}: [{}]", fields.join(" ")));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            field.check(range)?;
        }
    }
    Ok(())
}

/// Whether the schedule says something about a time zone, as far as Kubernetes looks for it.
///
/// ```
/// use revisor_object::cron_names_time_zone;
/// assert!(cron_names_time_zone("CRON_TZ=UTC 0 0 * * *"));
/// ```
pub fn cron_names_time_zone(schedule: &str) -> bool {
    schedule.contains("TZ")
}

/// Why a text is not a cron schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronError(String);

fn fail(reason: impl Into<String>) -> Result<(), CronError> {
    Err(CronError(reason.into()))
}

fn check_descriptor(text: &str) -> Result<(), CronError> {
    if matches!(text, "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly") {
        return Ok(());
    }
    let Some(interval) = text.strip_prefix("@every ") else {
        return fail(format!("unrecognized descriptor: {text}"));
    };
    match interval.parse::<Duration>() {
        Ok(_) => Ok(()),
        Err(error) => fail(format!("failed to parse duration {text}: {error}")),
    }
}

/// The bounds of one field, and the names that stand for numbers in it.
struct Field {
    least: i64,
    most: i64,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { least: 0, most: 59, names: &[] },
    Field { least: 0, most: 23, names: &[] },
    Field { least: 1, most: 31, names: &[] },
    Field {
        least: 1,
        most: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { least: 0, most: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

impl Field {
    /// Checks `*`, `number` or `number-number`, each with an optional `/step`.
    fn check(&self, text: &str) -> Result<(), CronError> {
        let mut by_slash = text.split('/');
        let range = by_slash.next().unwrap_or_default();
        let (step, too_many_slashes) = (by_slash.next(), by_slash.next().is_some());
        let mut by_hyphen = range.split('-');
        let low = by_hyphen.next().unwrap_or_default();
        let (high, too_many_hyphens) = (by_hyphen.next(), by_hyphen.next().is_some());

        let (start, mut end) = if matches!(low, "*" | "?") {
            (self.least, self.most)
        } else {
            let start = self.number(low)?;
            if too_many_hyphens {
                return fail(format!("too many hyphens: {text}"));
            }
            (start, high.map_or(Ok(start), |high| self.number(high))?)
        };
        if too_many_slashes {
            return fail(format!("too many slashes: {text}"));
        }
        let step = match step {
            None => 1,
            Some(step) => {
                if high.is_none() {
                    end = self.most;
                }
                natural(step)?
            }
        };
        if start < self.least {
            return fail(format!("beginning of range ({start}) below minimum ({}): {text}", self.least));
        }
        if end > self.most {
            return fail(format!("end of range ({end}) above maximum ({}): {text}", self.most));
        }
        if start > end {
            return fail(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
        }
        if step == 0 {
            return fail(format!("step of range should be a positive number: {text}"));
        }
        Ok(())
    }

    fn number(&self, text: &str) -> Result<i64, CronError> {
        let lower = text.to_lowercase();
        match self.names.iter().position(|name| *name == lower) {
            Some(position) => Ok(self.least + position as i64),
            None => natural(text),
        }
    }
}

fn natural(text: &str) -> Result<i64, CronError> {
    match atoi(text) {
        Ok(number) if number < 0 => Err(CronError(format!("negative number ({number}) not allowed: {text}"))),
        Ok(number) => Ok(number),
        Err(error) => Err(CronError(format!("failed to parse int from {text}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for text in [
            "* * * * *",
            "? ? ? ? ?",
            "0 0 1 1 0",
            "59 23 31 12 6",
            "*/5 0-23/2 1,15 JAN-dec Sun",
            "5/15 * * * *",
            "*-9 * * * *",
            "1,,2 , * * *",
            "  0\t0 * * *  ",
            "+5 * * * *",
            "@yearly",
            "@annually",
            "@monthly",
            "@weekly",
            "@daily",
            "@midnight",
            "@hourly",
            "@every 1h30m",
            "@every -1s",
            "TZ=UTC 0 0 * * *",
            "CRON_TZ=Europe/Berlin @daily",
            "TZ= 0 0 * * *",
            "TZ=Local 0 0 * * *",
        ] {
            assert_eq!(check_cron(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_explained() {
        for (text, want) in [
            ("", "empty spec string"),
            (" ", "expected exactly 5 fields, found 0: []"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* 24 * * *", "end of range (24) above maximum (23): 24"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("* * * 13 *", "end of range (13) above maximum (12): 13"),
            ("* * * * 7", "end of range (7) above maximum (6): 7"),
            ("9-5 * * * *", "beginning of range (9) beyond end of range (5): 9-5"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("x * * * *", r#"failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax"#),
            ("-5 * * * *", r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
            ("1- * * * *", r#"failed to parse int from : strconv.Atoi: parsing "": invalid syntax"#),
            ("mon * * * *", r#"failed to parse int from mon: strconv.Atoi: parsing "mon": invalid syntax"#),
            (
                "99999999999999999999 * * * *",
                r#"failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range"#,
            ),
            ("@reboot", "unrecognized descriptor: @reboot"),
            ("@every", "unrecognized descriptor: @every"),
            ("@every x", r#"failed to parse duration @every x: time: invalid duration "x""#),
            ("TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
            ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
            ("TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
            ("TZ=UTC ", "expected exactly 5 fields, found 0: []"),
        ] {
            assert_eq!(check_cron(text).map_err(|error| error.to_string()), Err(want.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn time_zones_in_schedules() {
        for (text, want) in [("TZ=UTC * * * * *", true), ("CRON_TZ=UTC", true), ("* * * * *", false)] {
            assert_eq!(cron_names_time_zone(text), want, "{text:?}");
        }
    }
}
