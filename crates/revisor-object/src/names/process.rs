//! The rules for what processes are told: variables of their environment, identifiers, users and groups.

use super::{Problems, is_inner_qualified};

/// Checks the name of a variable of the environment, by the older and narrower rule.
///
/// ```
/// use revisor_object::names::env_var_name;
/// assert!(env_var_name("MY_ENV.NAME").is_empty());
/// assert_eq!(env_var_name("1ST").len(), 1);
/// ```
pub fn env_var_name(text: &str) -> Problems {
    let mut problems = Problems::new();
    if text.is_empty()
        || text.starts_with(|first: char| first.is_ascii_digit())
        || !text.bytes().all(is_inner_qualified)
    {
        problems.push(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and \
             must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for \
             validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
        );
    }
    problems.extend(super::parent_directory_problem(text));
    problems
}

/// Checks the name of a variable of the environment: printable ASCII without `=`.
///
/// ```
/// use revisor_object::names::relaxed_env_var_name;
/// assert!(relaxed_env_var_name("1ST: or so").is_empty());
/// assert_eq!(relaxed_env_var_name("A=B").len(), 1);
/// ```
pub fn relaxed_env_var_name(text: &str) -> Problems {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty"];
    }
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') {
        return Problems::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='"]
}

/// Checks an identifier of the language C. Its length is not bounded.
///
/// ```
/// use revisor_object::names::c_identifier;
/// assert!(c_identifier("my_name").is_empty());
/// assert_eq!(c_identifier("my-name").len(), 1);
/// ```
pub fn c_identifier(text: &str) -> Problems {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !text.is_empty() && !text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(known) {
        return Problems::new();
    }
    vec![
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
         characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
         '[A-Za-z_][A-Za-z0-9_]*')",
    ]
}

/// Checks the number of a user.
///
/// ```
/// use revisor_object::names::user_id;
/// assert!(user_id(0).is_empty());
/// assert_eq!(user_id(-1), ["must be between 0 and 2147483647, inclusive"]);
/// ```
pub fn user_id(id: i64) -> Problems {
    if (0..=i64::from(i32::MAX)).contains(&id) {
        Problems::new()
    } else {
        vec!["must be between 0 and 2147483647, inclusive"]
    }
}

/// Checks the number of a group, which follows the rule of [`user_id`].
///
/// ```
/// use revisor_object::names::group_id;
/// assert!(group_id(1000).is_empty());
/// ```
pub fn group_id(id: i64) -> Problems {
    user_id(id)
}
