//! CBOR, by a small table.

use revisor_object::{Object, Value, parse_json};

use super::*;
use crate::{StructId, Types};

fn types() -> (Types, StructId) {
    let table = "type,field,shape,presence,number,merge\nT,data,map:bytes,nonzero,1,\nT,name,string,nonzero,2,\n";
    let types = Types::parse(table).expect("a good table");
    let id = types.id("T").expect("is there");
    (types, id)
}

fn said(read: Result<Value, CborError>) -> String {
    read.map_or_else(|error| error.to_string(), |value| panic!("read: {value:?}"))
}

fn object(json: &str) -> Object {
    match parse_json(json.as_bytes()).expect("JSON").value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

#[test]
fn texts_are_byte_strings_and_bytes_are_tagged() {
    let (types, id) = types();
    let written = types.write_cbor(Some(id), &object(r#"{"data":{"k":"AAH/"},"name":"n"}"#));
    assert_eq!(written, b"\xa2\x44data\xa1\x41k\xd6\x43\x00\x01\xff\x44name\x41n");
    assert_eq!(split_cbor_map(&written), (2, &written[1..]));
}

#[test]
fn what_is_written_is_read() {
    let (types, id) = types();
    for json in [
        "{}",
        r#"{"data":{"k":"AAH/","e":""},"name":"é"}"#,
        r#"{"a":[1,-1,23,24,255,256,65536,4294967296,9223372036854775807,-9223372036854775808],"b":null,"c":true,"d":false}"#,
        r#"{"f":[1.5,0.1,1e300,-2.5],"g":{"h":{"i":[[],{}]}}}"#,
    ] {
        let value = object(json);
        let ids = if json.contains("name") { vec![Some(id), None] } else { vec![None] };
        for id in ids {
            let written = types.write_cbor(id, &value);
            assert_eq!(types.read_cbor(id, &written), Ok(Value::Object(value.clone())), "{json}");
        }
    }
    let names: Vec<String> = (0..300).map(|at| format!("k{at}")).collect();
    let many: Object = names.iter().map(|name| (name.as_str(), Value::from(name.as_str()))).collect();
    let written = types.write_cbor(None, &many);
    let (count, rest) = split_cbor_map(&written);
    assert_eq!((count, rest.len()), (300, written.len() - 3));
    assert_eq!(types.read_cbor(None, &written), Ok(Value::Object(many)));
}

#[test]
fn custom_objects_are_read_as_json_would_say_them() {
    let (types, _) = types();
    for (name, bytes, want) in [
        ("byte string", &b"\x41b"[..], r#""b""#),
        ("text in parts", b"\x7f\x61x\x61y\xff", r#""xy""#),
        ("no text", b"\x42\xff\xfe", "\"\u{fffd}\u{fffd}\""),
        ("base64", b"\xd6\x43abc", r#""YWJj""#),
        ("base64url", b"\xd5\x42\xfb\xff", r#""-_8""#),
        ("base16", b"\xd7\x42\x0a\xff", r#""0aff""#),
        ("unknown tag", b"\xd9\x04\xd2\x61x", r#""x""#),
        ("itself", b"\xd9\xd9\xf7\x01", "1"),
        ("time in text", b"\xc0\x742020-01-01T00:00:00Z", r#""2020-01-01T00:00:00Z""#),
        ("time in seconds", b"\xc1\x1a\x5e\x0b\xe1\x00", r#""2020-01-01T00:00:00Z""#),
        ("single", b"\xfa\x3f\xc0\x00\x00", "1.5"),
        ("half", b"\xf9\x3e\x00", "1.5"),
        ("whole", b"\xf9\x40\x00", "2"),
        ("long form", b"\x18\x01", "1"),
        ("endless", b"\xbf\x61a\x9f\x01\xff\xff", r#"{"a":[1]}"#),
        ("null", b"\xf6", "null"),
    ] {
        assert_eq!(types.read_cbor(None, bytes).map(|value| value.to_json()).as_deref(), Ok(want), "{name}");
    }
}

#[test]
fn bytes_that_are_no_item_are_refused_in_the_words_of_the_original() {
    let (types, _) = types();
    for (bytes, want) in [
        (&b""[..], "EOF"),
        (b"\x63ab", "unexpected EOF"),
        (b"\x82\x01", "unexpected EOF"),
        (b"\x9f\x01", "unexpected EOF"),
        (b"\xc6", "unexpected EOF"),
        (b"\x01\x01", "cbor: 1 bytes of extraneous data starting at index 1"),
        (b"\xff", "cbor: unexpected \"break\" code"),
        (b"\xbf\x61a\xff", "cbor: unexpected \"break\" code"),
        (b"\x1c", "cbor: invalid additional information 28 for type positive integer"),
        (b"\xdf", "cbor: invalid additional information 31 for type tag"),
        (b"\xf8\x10", "cbor: invalid simple value 16 for type primitives"),
        (b"\x7f\x41x\xff", "cbor: wrong element type byte string for indefinite-length UTF-8 text string"),
        (b"\x5f\x5f\xff\xff", "cbor: indefinite-length byte string chunk is not definite-length"),
        (b"\xf9\x7e\x00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"),
        (
            b"\xf9\xfc\x00",
            "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity",
        ),
        (b"\xc2\x42\x01\x00", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
        (b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
        (b"\xba\x00\x20\x00\x01", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
        (
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            "cbor: array length 18446744073709551615 is too large, it would cause integer overflow",
        ),
        (
            b"\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
            "cbor: byte string length 18446744073709551615 is too large, causing integer overflow",
        ),
    ] {
        assert_eq!(said(types.read_cbor(None, bytes)), want, "{bytes:x?}");
        assert_eq!(read_cbor_type(bytes).map_err(|error| error.to_string()), Err(want.to_owned()), "{bytes:x?}");
    }
    let deep = |levels| [vec![0x81; levels], vec![1]].concat();
    assert_eq!(types.read_cbor(None, &deep(20_000)), Err(CborError::TooDeep(10_000)));
    assert_eq!(types.read_cbor(None, &deep(1_000)), Err(CborError::TooDeep(512)));
    assert!(types.read_cbor(None, &deep(500)).is_ok());
    assert_eq!(types.read_cbor(None, &[vec![0xc6; 20_000], vec![1]].concat()), Err(CborError::TooDeep(10_000)));
}

#[test]
fn what_json_cannot_say_is_refused() {
    let (types, _) = types();
    let time = "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: \
                Time.MarshalText: year outside of range [0,9999]";
    for (bytes, want) in [
        (
            &b"\xf7"[..],
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized",
        ),
        (
            b"\xf0",
            "cbor: data item of cbor type primitives is not accepted by protocol: simple value 16 is not recognized",
        ),
        (
            b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
            "cbor: cannot unmarshal positive integer into Go value of type int64 (18446744073709551615 overflows Go's int64)",
        ),
        (
            b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
            "cbor: cannot unmarshal negative integer into Go value of type int64 (-18446744073709551616 overflows Go's int64)",
        ),
        (b"\x62\xff\xfe", "cbor: invalid UTF-8 string"),
        (b"\x7f\x61\xc3\x61\xbc\xff", "cbor: invalid UTF-8 string"),
        (b"\xa2\x61a\x01\x61a\x02", "cbor: found duplicate map key \"a\" at map element index 1"),
        (b"\xa2\x61a\x01\x41a\x02", "cbor: found duplicate map key \"a\" at map element index 1"),
        (b"\xa1\x01\x02", "cbor: cannot unmarshal positive integer into Go value of type string"),
        (b"\xa1\x80\x02", "cbor: cannot unmarshal array into Go value of type string"),
        (b"\xc0\x01", "cbor: tag number 0 must be followed by text string, got positive integer"),
        (b"\xc1\xf6", "cbor: tag number 1 must be followed by integer or floating-point number, got primitives"),
        (
            b"\xc0\x61x",
            "cbor: cannot set x for time.Time: parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
        ),
        (b"\xc1\x1b\x7f\xff\xff\xff\xff\xff\xff\xff", time),
        (b"\xc1\x3b\x7f\xff\xff\xff\xff\xff\xff\xff", time),
        // The first fault is told of, but a key that comes twice is worse.
        (b"\x82\x62\xff\xfe\xf7", "cbor: invalid UTF-8 string"),
        (b"\xa3\x61b\xf7\x61a\x01\x61a\x02", "cbor: found duplicate map key \"a\" at map element index 2"),
    ] {
        assert_eq!(said(types.read_cbor(None, bytes)), want, "{bytes:x?}");
    }
}

#[test]
fn what_does_not_fit_its_type_is_refused_in_the_words_of_the_original() {
    let (types, id) = types();
    for (bytes, want) in [
        (&b"\x01"[..], "cbor: cannot unmarshal positive integer into Go value of type T"),
        (
            b"\x80",
            "cbor: cannot unmarshal array into Go value of type T (cannot decode CBOR array to struct without toarray option)",
        ),
        (b"\xa1\x64name\x01", "cbor: cannot unmarshal positive integer into Go struct field T.name of type string"),
        (b"\xa1\x64name\xf5", "cbor: cannot unmarshal primitives into Go struct field T.name of type string"),
        (
            b"\xa1\x64data\x61x",
            "cbor: cannot unmarshal UTF-8 text string into Go struct field T.data of type map[string][]uint8",
        ),
        (
            b"\xa1\x64data\xa1\x61k\x64AAH/",
            "cbor: cannot unmarshal UTF-8 text string into Go struct field T.data of type []uint8",
        ),
        (
            b"\xa1\x64data\xa1\x01\x40",
            "cbor: cannot unmarshal positive integer into Go struct field T.data of type string",
        ),
        (
            b"\xa1\x64data\xa1\x61k\x42a!",
            "cbor: failed to decode base64 from byte string: illegal base64 data at input byte 1",
        ),
        (
            b"\xa1\x64data\xa1\x61k\x81\x19\x01\x00",
            "cbor: cannot unmarshal positive integer into Go struct field T.data of type uint8 (256 overflows uint8)",
        ),
        (b"\xa2\x64name\x61a\x44name\x61b", "cbor: found duplicate map key \"name\" at map element index 1"),
        (b"\xa2\x61x\x61a\x61x\x61b", "cbor: found duplicate map key \"x\" at map element index 1"),
        (
            b"\xa1\xf5\x01",
            "cbor: cannot unmarshal primitives into Go value of type string (map key is of type primitives and cannot be used to match struct field name)",
        ),
    ] {
        assert_eq!(said(types.read_cbor(Some(id), bytes)), want, "{bytes:x?}");
    }
    for (bytes, want) in [
        (&b"\xa1\x64data\xa1\x61k\x44AAH/"[..], r#"{"data":{"k":"AAH/"}}"#),
        (b"\xa1\x64data\xa1\x61k\xd6\x43\x00\x01\xff", r#"{"data":{"k":"AAH/"}}"#),
        (b"\xa1\x64data\xa1\x61k\x83\x00\x01\x18\xff", r#"{"data":{"k":"AAH/"}}"#),
        (b"\xa2\x01\x02\x64name\x41n", r#"{"name":"n"}"#),
        (b"\xa1\x64name\xc0\x742020-01-01T00:00:00Z", r#"{"name":"2020-01-01T00:00:00Z"}"#),
    ] {
        assert_eq!(types.read_cbor(Some(id), bytes), Ok(Value::Object(object(want))), "{bytes:x?}");
    }
}

#[test]
fn an_unknown_field_is_dropped_and_told_of_by_its_position() {
    let (types, id) = types();
    let bytes = b"\xa3\x64name\x41n\x61x\xa1\x61a\x01\x61y\x02";
    let read = types.read_cbor_strictly(Some(id), bytes).expect("fits");
    assert_eq!(read.value, Value::Object(object(r#"{"name":"n"}"#)));
    assert_eq!(read.unknown_field, Some(CborError::UnknownField(1)));
    assert_eq!(types.read_cbor_strictly(None, bytes).map(|read| read.unknown_field), Ok(None));
}

#[test]
fn an_object_says_of_which_kind_it_is() {
    let claimed = |bytes: &[u8]| read_cbor_type(bytes).map(|ClaimedType { kind, api_version }| (kind, api_version));
    let text = |text: &str| text.to_owned();
    assert_eq!(claimed(b"\xd9\xd9\xf7\xa2\x44kind\x61K\x6aapiVersion\x42v1"), Ok((text("K"), text("v1"))));
    assert_eq!(claimed(b"\xa1\x64spec\xa1\x61a\xf7"), Ok((text(""), text(""))));
    assert_eq!(claimed(b"\xf6"), Ok((text(""), text(""))));
    for (bytes, want) in [
        (&b"\x01"[..], "cbor: cannot unmarshal positive integer into Go value of type v1.TypeMeta"),
        (
            b"\xa1\x64kind\x01",
            "cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string",
        ),
    ] {
        assert_eq!(claimed(bytes).map_err(|error| error.to_string()), Err(text(want)));
    }
}

#[test]
fn people_are_shown_items_in_their_notation() {
    for (bytes, want) in [
        (&b"\xa2\x61a\x01\x41b\x82\x20\xf6"[..], r#"{"a": 1, 'b': [-1, null]}"#),
        (b"\xd9\xd9\xf7\xbf\x61a\x9f\xf5\xf4\xff\xff", r#"55799({_ "a": [_ true, false]})"#),
        (b"\x42\xff\x00", "h'ff00'"),
        (b"\x40", "h''"),
        (b"\x62\xc3\xbc", r#""\u00fc""#),
        (b"\x63\"\\\n", r#""\"\\\n""#),
        (b"\x7f\x61a\x61b\xff", r#"(_ "a", "b")"#),
        (b"\x5f\xff", "''_"),
        (b"\xf9\x3e\x00", "1.5"),
        (b"\xf9\x40\x00", "2.0"),
        (b"\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c", "1.0e+300"),
        (b"\xf7", "undefined"),
        (b"\xf0", "simple(16)"),
        (b"\x61", "61"),
    ] {
        assert_eq!(diagnose_cbor(bytes), want, "{bytes:x?}");
    }
}

#[test]
fn numbers_are_written_in_as_few_bytes_as_they_need() {
    let (types, _) = types();
    for (number, want) in [
        (1.5, &b"\xf9\x3e\x00"[..]),
        (65504.0, b"\xf9\x7b\xff"),
        (5.960464477539063e-8, b"\xf9\x00\x01"),
        (6.103515625e-5, b"\xf9\x04\x00"),
        (-0.0, b"\xf9\x80\x00"),
        (100000.5, b"\xfa\x47\xc3\x50\x40"),
        (0.1, b"\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
    ] {
        let object: Object = [("f", Value::Float(number))].into_iter().collect();
        assert_eq!(&types.write_cbor(None, &object)[3..], want, "{number}");
    }
}
