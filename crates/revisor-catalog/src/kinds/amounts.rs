//! Amounts of resources: lists that give each resource by name a quantity, as in `requests` or `capacity`.
//!
//! Quantities in a conforming object have been read before, so reading them again does not fail.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity, Value};

use super::resource_names::is_integer;

/// The quantity that a conforming value holds.
pub(crate) fn amount(value: &Value) -> Quantity {
    value.as_str().and_then(|text| Quantity::parse(text).ok()).unwrap_or(Quantity::ZERO)
}

/// The amount of one resource in a list.
pub(crate) fn amount_of(list: Option<&Object>, name: &str) -> Option<Quantity> {
    list?.get(name).map(amount)
}

/// Brings the amounts of a list to whole thousandths, which is all that is ever kept of them.
pub(crate) fn round(object: &mut Object, list: &str) {
    let Some(Value::Object(amounts)) = object.get_mut(list) else { return };
    for (_, value) in amounts.iter_mut() {
        let quantity = amount(value);
        if !quantity.is_whole_millis() {
            *value = Value::from(Quantity::from_millis(quantity.milli_value(), quantity.notation()).to_string());
        }
    }
}

/// Whether two lists hold the same amounts, however they are written.
pub(crate) fn same_amounts(one: Option<&Object>, two: Option<&Object>) -> bool {
    let (one_len, two_len) = (one.map_or(0, Object::len), two.map_or(0, Object::len));
    one_len == two_len
        && one.into_iter().flat_map(Object::iter).all(|(name, value)| {
            let other = two.and_then(|two| two.get(name));
            other.is_some_and(|other| value == other || amount(value) == amount(other))
        })
}

/// An amount that must be greater than zero.
pub(crate) fn positive(path: FieldPath<'_>, quantity: &Quantity) -> Option<FieldError> {
    (quantity.sign() <= 0).then(|| FieldError::invalid(path, quantity.to_string(), "must be greater than zero"))
}

/// An amount that may not be negative.
pub(crate) fn not_negative(path: FieldPath<'_>, quantity: &Quantity) -> Option<FieldError> {
    let detail = "must be greater than or equal to 0";
    quantity.is_negative().then(|| FieldError::invalid(path, quantity.to_string(), detail))
}

/// An amount whose number of whole units may not be negative.
pub(crate) fn basic(path: FieldPath<'_>, quantity: &Quantity) -> Option<FieldError> {
    let units = quantity.value();
    (units < 0).then(|| FieldError::invalid(path, units, "must be a valid resource quantity"))
}

/// Whether an amount of huge pages is a whole number of pages of the size that the name of the resource says. A size that
/// there is no room for is nothing, and divides nothing.
pub(crate) fn is_whole_pages(name: &str, quantity: &Quantity) -> bool {
    let size = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    let size = size.filter(|size| size.sign() > 0 && size.milli_value() % 1000 == 0);
    size.and_then(|size| quantity.value().checked_rem(size.value())) == Some(0)
}

/// An amount of a resource: not negative, and whole where the resource cannot be divided.
pub(crate) fn of_resource(path: FieldPath<'_>, name: &str, quantity: &Quantity) -> FieldErrors {
    let mut errors: FieldErrors = not_negative(path, quantity).into_iter().collect();
    if is_integer(name) && quantity.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, quantity.to_string(), "must be an integer"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_to_thousandths() {
        for (text, want) in
            [("1Gi", "1Gi"), ("100u", "1m"), ("1.0005", "1001m"), ("+5", "+5"), ("05Gi", "05Gi"), ("0", "0")]
        {
            let list: Object = [("cpu", Value::from(text))].into_iter().collect();
            let mut object: Object = [("requests", Value::from(list))].into_iter().collect();
            round(&mut object, "requests");
            assert_eq!(object.at(&["requests", "cpu"]).and_then(Value::as_str), Some(want), "{text}");
        }
    }

    #[test]
    fn huge_pages_are_counted_by_their_size() {
        for (name, text, want) in [
            ("hugepages-2Mi", "4Mi", true),
            ("hugepages-2Mi", "3Mi", false),
            ("hugepages-2Mi", "9223372036854775808", true),
            ("hugepages-1e30", "1", false),
            ("hugepages-x", "1", false),
            ("hugepages-500m", "1", false),
        ] {
            let quantity = Quantity::parse(text).expect("a quantity");
            assert_eq!(is_whole_pages(name, &quantity), want, "{name} {text}");
        }
    }

    #[test]
    fn lists_are_compared_by_amount() {
        let list = |text: &str| -> Object { [("cpu", Value::from(text))].into_iter().collect() };
        assert!(same_amounts(Some(&list("1Ki")), Some(&list("1024"))));
        assert!(!same_amounts(Some(&list("1")), Some(&list("2"))));
        assert!(!same_amounts(Some(&list("1")), None));
        assert!(same_amounts(None, Some(&Object::new())));
    }
}
