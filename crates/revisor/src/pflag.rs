//! Flags in the syntax of kube-apiserver (upstream: `spf13/pflag`): `--name=value`, `--name value`, `--name` for truths,
//! underscores for dashes, and what becomes of a flag that is given again. What is wrong is said in the original's words,
//! because scripts look for them.

use std::net::IpAddr;

use revisor_object::Quantity;

/// What the value of a flag must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagType {
    Bool,
    /// `true`, `raw`, or a version to report.
    Version,
    Text,
    Int,
    Uint,
    Level,
    Float,
    Duration,
    Ip,
    Quantity,
    PortRange,
    /// Texts between commas; given again, more of them.
    Texts,
    Ints,
    /// One text each time.
    TextArray,
    NamedCertKey,
    /// `key=value` between commas; given again, more of them.
    Map,
    StringMap,
    Gates,
    Modules,
}

/// What the types are called.
const NAMES: [(&str, FlagType); 20] = [
    ("bool", FlagType::Bool),
    ("version", FlagType::Version),
    ("string", FlagType::Text),
    ("int", FlagType::Int),
    ("uint", FlagType::Uint),
    ("Level", FlagType::Level),
    ("float", FlagType::Float),
    ("float32", FlagType::Float),
    ("duration", FlagType::Duration),
    ("ip", FlagType::Ip),
    ("quantity", FlagType::Quantity),
    ("portRange", FlagType::PortRange),
    ("strings", FlagType::Texts),
    ("int32Slice", FlagType::Ints),
    ("stringArray", FlagType::TextArray),
    ("namedCertKey", FlagType::NamedCertKey),
    ("mapStringString", FlagType::Map),
    ("stringToString", FlagType::StringMap),
    ("colonSeparatedMultimapStringString", FlagType::Gates),
    ("moduleSpec", FlagType::Modules),
];

/// What becomes of a flag that is given several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Last,
    Joined,
    Each,
}

impl FlagType {
    pub(crate) fn named(name: &str) -> Option<FlagType> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }

    /// What a flag says that is given without a value, if it may be.
    fn implied(self) -> Option<&'static str> {
        matches!(self, FlagType::Bool | FlagType::Version).then_some("true")
    }

    fn repeated(self) -> Repeated {
        match self {
            FlagType::Texts | FlagType::Ints | FlagType::Map | FlagType::StringMap | FlagType::Gates => {
                Repeated::Joined
            }
            FlagType::TextArray | FlagType::NamedCertKey => Repeated::Each,
            _ => Repeated::Last,
        }
    }

    /// What is wrong with a value.
    pub(crate) fn check(self, value: &str) -> Result<(), String> {
        let number =
            |parser: &str, value: &str, problem: &str| Err(format!("strconv.{parser}: parsing {value:?}: {problem}"));
        match self {
            FlagType::Bool if truth(value).is_none() => number("ParseBool", value, "invalid syntax"),
            FlagType::Int => match integer(value) {
                Some(_) => Ok(()),
                None => number("ParseInt", value, number_problem(value)),
            },
            FlagType::Uint | FlagType::Level => match integer(value).is_some_and(|number| number >= 0) {
                true => Ok(()),
                false if value.starts_with(['-', '+']) => number("ParseUint", value, "invalid syntax"),
                false => number("ParseUint", value, number_problem(value)),
            },
            FlagType::Ints => {
                let wrong = value.split(',').filter(|item| !item.is_empty()).find(|item| integer(item).is_none());
                wrong.map_or(Ok(()), |item| number("ParseInt", item, "invalid syntax"))
            }
            FlagType::Float if value.parse::<f64>().is_err() => number("ParseFloat", value, "invalid syntax"),
            FlagType::Duration => {
                value.parse::<revisor_object::Duration>().map(drop).map_err(|error| error.to_string())
            }
            FlagType::Ip if !value.trim().is_empty() && value.trim().parse::<IpAddr>().is_err() => {
                Err(format!("failed to parse IP: {value:?}"))
            }
            FlagType::Quantity => Quantity::parse(value).map(drop).map_err(|error| error.to_string()),
            FlagType::StringMap => {
                let wrong = value.split(',').filter(|pair| !pair.is_empty()).find(|pair| !pair.contains('='));
                wrong.map_or(Ok(()), |pair| Err(format!("{pair} must be formatted as key=value")))
            }
            FlagType::Modules => {
                let wrong = value.split(',').map(str::trim).filter(|spec| !spec.is_empty()).find(|spec| {
                    spec.split_once('=').is_none_or(|(_, level)| integer(level).is_none_or(|level| level < 0))
                });
                wrong.map_or(Ok(()), |spec| Err(format!("{spec:?} does not have the pattern=N format")))
            }
            _ => Ok(()),
        }
    }
}

/// A truth as Go reads it.
pub(crate) fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// An integer as Go reads it where it looks for the base itself.
fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, base) = match lower.get(..2) {
        Some("0x") => (&lower[2..], 16),
        Some("0o") => (&lower[2..], 8),
        Some("0b") => (&lower[2..], 2),
        Some(_) if lower.starts_with('0') => (&lower[1..], 8),
        _ => (&*lower, 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i64::from_str_radix(digits, base).ok().map(|number| sign * number)
}

fn number_problem(text: &str) -> &'static str {
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { "value out of range" } else { "invalid syntax" }
}

/// A flag that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What a command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// The flags, in order, with what they say.
    pub(crate) given: Vec<Given>,
    /// What is no flag.
    pub(crate) others: Vec<String>,
    pub(crate) wants_help: bool,
}

/// Reads a command line. `known` tells of the flags by their names.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = String>,
    known: impl Fn(&str) -> Option<FlagType>,
) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            parsed.others.extend(arguments.by_ref());
        } else if let Some(flag) = argument.strip_prefix("--") {
            let (name, value) = split(flag);
            if name.is_empty() || name.starts_with('-') {
                return Err(format!("bad flag syntax: {argument}"));
            }
            if name == "help" {
                parsed.wants_help = true;
                continue;
            }
            let Some(kind) = known(&name) else { return Err(format!("unknown flag: --{name}")) };
            let value = value.or_else(|| kind.implied().map(str::to_owned)).or_else(|| arguments.next());
            let value = value.ok_or_else(|| format!("flag needs an argument: --{name}"))?;
            check(kind, &format!("--{name}"), &value)?;
            parsed.given.push(Given { name, value });
        } else if let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            match letters.split_at(letters.chars().next().map_or(0, char::len_utf8)) {
                ("h", _) => parsed.wants_help = true,
                ("v", rest) => {
                    let value = match rest {
                        "" => arguments.next().ok_or("flag needs an argument: 'v' in -v")?,
                        rest => rest.strip_prefix('=').unwrap_or(rest).to_owned(),
                    };
                    check(FlagType::Level, "-v, --v", &value)?;
                    parsed.given.push(Given { name: "v".to_owned(), value });
                }
                (letter, _) => return Err(format!("unknown shorthand flag: '{letter}' in -{letters}")),
            }
        } else {
            parsed.others.push(argument);
        }
    }
    Ok(parsed)
}

/// The name of a flag in its usual form, and its value if it is there.
fn split(flag: &str) -> (String, Option<String>) {
    let (name, value) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (flag, None),
    };
    (name.replace('_', "-"), value)
}

fn check(kind: FlagType, shown: &str, value: &str) -> Result<(), String> {
    kind.check(value).map_err(|problem| format!("invalid argument {value:?} for {shown:?} flag: {problem}"))
}

/// What flags say together: of those that are given again, the last one counts, or all of them do. The order is that in
/// which they were first given.
pub(crate) fn gather(given: Vec<Given>, kind: impl Fn(&str) -> FlagType) -> Vec<Given> {
    let mut gathered: Vec<Given> = Vec::with_capacity(given.len());
    for flag in given {
        let repeated = kind(&flag.name).repeated();
        match gathered.iter_mut().find(|known| known.name == flag.name && repeated != Repeated::Each) {
            Some(known) if repeated == Repeated::Joined && !known.value.is_empty() => {
                known.value.push(',');
                known.value.push_str(&flag.value);
            }
            Some(known) => known.value = flag.value,
            None => gathered.push(flag),
        }
    }
    gathered
}

#[cfg(test)]
mod tests;
