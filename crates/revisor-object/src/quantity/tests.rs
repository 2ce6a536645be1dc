//! Quantities as the original reads, writes and compares them.

use super::*;
use proptest::prelude::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn quantities_are_written_as_the_original_writes_them() {
    for (text, want) in [
        ("0", "0"),
        ("00", "0"),
        ("-0", "0"),
        ("0.0", "0"),
        ("0Ki", "0"),
        ("0e5", "0"),
        ("1", "1"),
        ("-1", "-1"),
        ("100", "100"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5."),
        ("1.5", "1500m"),
        ("1.5G", "1500M"),
        ("10000k", "10M"),
        ("12345k", "12345k"),
        ("100u", "100u"),
        ("1000u", "1m"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.1n", "2n"),
        ("0.0000000001", "1n"),
        ("1E", "1E"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1e+3", "1e+3"),
        ("1e4", "10e3"),
        ("1000e3", "1e6"),
        ("1e-3", "1e-3"),
        ("1e-12", "1e-9"),
        ("1e-2000000000", "1e-9"),
        ("1e2000000000", "100e1999999998"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("1024Mi", "1Gi"),
        ("1000Ki", "1000Ki"),
        ("-8Ki", "-8Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.1Gi", "107374182400m"),
        ("0.0001Ki", "102400u"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("7Ei", "7Ei"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("12345678901234567890k", "12345678901234567890k"),
        ("123456789012345678900k", "123456789012345678900k"),
        // What is regular enough comes back as it was.
        ("+1", "+1"),
        ("01", "01"),
        ("1.500", "1.500"),
        ("1.G", "1.G"),
        // What has no digits passes for nothing.
        ("+", "0"),
        (".", "0"),
        ("m", "0"),
    ] {
        assert_eq!(quantity(text).to_string(), want, "{text:?}");
    }
}

#[test]
fn amounts_beyond_all_suffixes_keep_their_value() {
    for (text, want) in [("1000E", "1e21"), ("-1500000E", "-1500e21"), (&format!("1{}", "0".repeat(44)), "100e42")] {
        assert_eq!(quantity(text).to_string(), want);
        assert_eq!(quantity(want), quantity(text));
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for (text, want) in [
        ("", QuantityError::Format),
        (" 1", QuantityError::Format),
        ("1 ", QuantityError::Format),
        ("1.2.3", QuantityError::Format),
        ("abc", QuantityError::Format),
        ("--1", QuantityError::Suffix),
        ("1+m", QuantityError::Format),
        ("1é", QuantityError::Format),
        ("1ki", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1i", QuantityError::Suffix),
        ("1mm", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1ee3", QuantityError::Suffix),
        ("1m3", QuantityError::Suffix),
        ("1+3", QuantityError::Suffix),
        ("1e99999999999999999999", QuantityError::Suffix),
        ("Ei", QuantityError::Number),
        (".e-12", QuantityError::Number),
        (&"1".repeat(MAX_QUANTITY_BYTES + 1), QuantityError::TooLong),
    ] {
        assert_eq!(Quantity::parse(text), Err(want), "{text:?}");
    }
    assert_eq!(
        QuantityError::Format.to_string(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
}

#[test]
fn fields_hold_texts_or_numbers() {
    for (value, want) in [
        (Value::Null, Ok("0")),
        (Value::from(" 0.5\n"), Ok("500m")),
        (Value::from(""), Err(QuantityError::Format)),
        (Value::from(2000), Ok("2k")),
        (Value::Float(0.25), Ok("250m")),
        (Value::Float(1e20), Ok("100E")),
        (Value::Float(f64::NAN), Err(QuantityError::Format)),
        (Value::from(true), Err(QuantityError::Format)),
        (Value::Array(Vec::new()), Err(QuantityError::Format)),
    ] {
        let shown = Quantity::from_value(&value).map(|quantity| quantity.to_string());
        assert_eq!(shown, want.map(str::to_owned), "{value:?}");
    }
}

#[test]
fn quantities_compare_by_amount() {
    let ascending = [
        "-1e2000000000",
        "-123456789012345678901234567890123456789012",
        "-2Ki",
        "-1",
        "-1n",
        "0",
        "1n",
        "999u",
        "1m",
        "1",
        "1023",
        "1Ki",
        "1025",
        "1M",
        "1Mi",
        "9E",
        "123456789012345678901234567890123456789012",
        "123456789012345678901234567890123456789013",
        "1e50",
        "1e2000000000",
    ];
    for (i, one) in ascending.iter().enumerate() {
        for (j, two) in ascending.iter().enumerate() {
            assert_eq!(quantity(one).cmp(&quantity(two)), i.cmp(&j), "{one} {two}");
        }
    }
    for (one, two) in [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("0", "-0"), ("1.500", "1500m"), ("1E", "1e18")]
    {
        assert_eq!(quantity(one), quantity(two));
    }
}

#[test]
fn quantities_as_integers() {
    for (text, value, milli, integer, whole) in [
        ("0", 0, 0, true, true),
        ("1", 1, 1000, true, true),
        ("1500m", 2, 1500, false, true),
        ("-1500m", -2, -1500, false, true),
        ("1u", 1, 1, false, false),
        ("-1u", -1, -1, false, false),
        ("1Gi", 1_073_741_824, 1_073_741_824_000, true, true),
        ("1e30", 0, 0, true, true),
        ("-1e30", 0, 0, true, true),
        ("1E", 1_000_000_000_000_000_000, 0, true, true),
        ("1Ei", 1_152_921_504_606_846_976, i64::MIN, true, true),
        ("1e2000000000", 0, 0, true, true),
        ("9223372036854775807", i64::MAX, -1000, true, true),
        ("9223372036854775808", i64::MIN, 0, true, true),
        (
            "123456789012345678901234567890123456789012",
            8_761_004_206_977_989_140,
            -1_199_228_034_047_877_600,
            true,
            true,
        ),
    ] {
        let quantity = quantity(text);
        assert_eq!((quantity.value(), quantity.milli_value()), (value, milli), "{text}");
        assert_eq!((quantity.is_integer(), quantity.is_whole_millis()), (integer, whole), "{text}");
        let sign = if text == "0" {
            0
        } else if text.starts_with('-') {
            -1
        } else {
            1
        };
        assert_eq!(quantity.sign(), sign, "{text}");
    }
}

#[test]
fn sums_and_differences() {
    for (one, two, sum, difference) in [
        ("1", "1", "2", "0"),
        ("1", "500m", "1500m", "500m"),
        ("0", "1Ki", "1Ki", "-1Ki"),
        ("1Ki", "1k", "2024", "24"),
        ("1Gi", "1Gi", "2Gi", "0"),
        ("1Ki", "0.5", "1024500m", "1023500m"),
        ("9223372036854775807", "1", "9223372036854775808", "9223372036854775806"),
        ("1e40", "1", "10000000000000000000000000000000000000001", "9999999999999999999999999999999999999999"),
        ("1e2000000000", "1", "100e1999999998", "100e1999999998"),
    ] {
        assert_eq!(quantity(one).add(&quantity(two)).to_string(), sum, "{one} + {two}");
        assert_eq!(quantity(one).sub(&quantity(two)).to_string(), difference, "{one} - {two}");
    }
    assert_eq!(Quantity::ZERO.sub(&Quantity::from_units(1024, Notation::BinarySi)).to_string(), "-1Ki");
    assert_eq!(Quantity::from_millis(2500, Notation::DecimalSi).to_string(), "2500m");
}

proptest! {
    #[test]
    fn what_is_written_reads_back(text in "[-+]?[0-9]{0,25}(\\.[0-9]{0,25})?(|n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})") {
        if let Ok(read) = Quantity::parse(&text) {
            let again = quantity(&read.to_string());
            prop_assert_eq!(&again, &read);
            prop_assert_eq!(again.to_string(), read.to_string());
        }
    }

    #[test]
    fn arithmetic_agrees_with_itself(one in any::<i64>(), two in any::<i64>(), three in -9_i32..30, four in -9_i32..30) {
        let (one, two) = (quantity(&format!("{one}e{three}")), quantity(&format!("{two}e{four}")));
        prop_assert_eq!(one.add(&two).sub(&two), one.clone());
        prop_assert_eq!(one.cmp(&two) as i32, one.sub(&two).sign());
        prop_assert_eq!(one.add(&two), two.add(&one));
    }

    #[test]
    fn no_text_is_too_strange(text in any::<String>()) {
        let _ = Quantity::parse(&text);
    }
}

#[test]
fn it_is_told_at_a_glance_what_is_written_as_it_is() {
    for text in ["1", "100m", "1500m", "128Mi", "1023Gi", "2500k", "9999", "1025Ki"] {
        assert!(Quantity::is_surely_canonical(text), "{text}");
    }
    for text in
        ["", "0", "01", "1000", "1000m", "1024Mi", "2048Ki", "-1", "1.5", "1e3", "1Kib", "12345", " 1", "1 ", "m"]
    {
        assert!(!Quantity::is_surely_canonical(text), "{text}");
    }
    for number in 0..=99_999 {
        for suffix in ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "K"] {
            let text = format!("{number}{suffix}");
            if Quantity::is_surely_canonical(&text) {
                assert_eq!(quantity(&text).to_string(), text);
            }
        }
    }
}
