//! What a reader of YAML 1.1 takes a plain text for, where it does not say that it is one.

/// Whether a reader would take the plain text for a truth, a number, a time or nothing.
pub(super) fn is_other_than_text(text: &str) -> bool {
    const WORDS: [&str; 38] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO", "false",
        "False", "FALSE", "off", "Off", "OFF", "~", "null", "Null", "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf",
        ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
    ];
    match text.as_bytes().first() {
        Some(b'.') => WORDS.contains(&text) || is_decimal(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            WORDS.contains(&text) || is_time(text) || is_integer(&plain) || is_decimal(&plain) || is_base_60(text)
        }
        _ => WORDS.contains(&text),
    }
}

/// `12`, `-0x1f`, `0b101`, `0o17`, within 64 bits.
fn is_integer(text: &str) -> bool {
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match (lower.get(..2), lower.len()) {
        (Some("0x"), _) => (16, &lower[2..]),
        (Some("0b"), _) => (2, &lower[2..]),
        (Some("0o"), _) => (8, &lower[2..]),
        (Some(_), 2..) if lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, &*lower),
    };
    let is_number = digits.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let limit = if is_negative { 1 << 63 } else { u64::MAX };
    // Only numbers without a sign reach beyond 63 bits.
    let limit = if text.starts_with('+') { i64::MAX as u64 } else { limit };
    is_number && u64::from_str_radix(digits, radix).is_ok_and(|number| number <= limit)
}

/// A decimal number as YAML 1.1 has it.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits
        && is_digits(whole)
        && is_digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
        // What is beyond the range of floats stays a text.
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `12:30:45`: a number to the base of 60, to readers older than this one.
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|first: char| first.is_ascii_digit()) || !is_digits(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten @ b'0'..=b'5', one] => ten.is_ascii_digit() && one.is_ascii_digit(),
        _ => false,
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| is_sixtieth(part)) && is_sixtieth(last) && is_digits(fraction)
}

/// A date, or a date and a time.
fn is_time(text: &str) -> bool {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>, values: std::ops::RangeInclusive<u32>| {
        digits.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse().is_ok_and(|number| values.contains(&number))
    };
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    let date: Vec<&str> = date.split('-').collect();
    let [year, month, day] = date[..] else { return false };
    if !number(year, 4..=4, 0..=9999) || !number(month, 1..=2, 1..=12) || !number(day, 1..=2, 1..=31) {
        return false;
    }
    let days = match month.trim_start_matches('0') {
        "2" if year.parse().is_ok_and(|year: u32| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        }) =>
        {
            29
        }
        "2" => 28,
        "4" | "6" | "9" | "11" => 30,
        _ => 31,
    };
    if !number(day, 1..=2, 1..=days) {
        return false;
    }
    let Some((separator, time)) = time else { return true };
    let clock = if separator == " " {
        time
    } else {
        let Some(at) = time.find(['Z', '+', '-']) else { return false };
        let zone = &time[at..];
        let is_offset = |zone: &str| match zone.get(1..).and_then(|zone| zone.split_once(':')) {
            Some((hours, minutes)) => number(hours, 2..=2, 0..=24) && number(minutes, 2..=2, 0..=60),
            None => false,
        };
        if zone != "Z" && !is_offset(zone) {
            return false;
        }
        &time[..at]
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let (second, fraction) = match second.split_once(['.', ',']) {
        Some((second, fraction)) => (second, Some(fraction)),
        None => (second, None),
    };
    let is_fraction = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number(hour, 1..=2, 0..=23)
        && number(minute, 1..=2, 0..=59)
        && number(second, 1..=2, 0..=59)
        && fraction.is_none_or(is_fraction)
}
