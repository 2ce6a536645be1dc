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
        for id in [Some(id), None] {
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
    let (types, id) = types();
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
    assert_eq!(
        types.read_cbor(Some(id), b"\xa1\x61x\xf9\x40\x00"),
        Ok(Value::Object([("x", Value::Float(2.0))].into_iter().collect()))
    );
}

#[test]
fn what_json_cannot_say_is_refused() {
    let (types, id) = types();
    for (name, bytes) in [
        ("undefined", &b"\xf7"[..]),
        ("simple value", b"\xf0"),
        ("not a number", b"\xf9\x7e\x00"),
        ("infinity", b"\xf9\x7c\x00"),
        ("big number", b"\xc2\x42\x01\x00"),
        ("beyond 64 bits", b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff"),
        ("text that is no text", b"\x62\xff\xfe"),
        ("key twice", b"\xa2\x61a\x01\x61a\x02"),
        ("key twice, as text and as bytes", b"\xa2\x61a\x01\x41a\x02"),
        ("number as key", b"\xa1\x01\x02"),
        ("too long", b"\x9b\x7f\xff\xff\xff\xff\xff\xff\xff"),
        ("cut off", b"\x63ab"),
        ("nothing", b""),
        ("break", b"\xff"),
        ("more", b"\x01\x01"),
        ("bytes in a text", b"\x7f\x41x\xff"),
        ("no such length", b"\x1c"),
    ] {
        assert!(types.read_cbor(None, bytes).is_err(), "{name}");
    }
    let deep = [vec![0x81; 20_000], vec![1]].concat();
    assert_eq!(types.read_cbor(None, &deep), Err(CborError::TooDeep));
    let text = b"\xa1\x64data\xa1\x61k\x64AAH/";
    assert_eq!(types.read_cbor(Some(id), text), Err(CborError::TextForBytes("k".to_owned())));
    let bytes = b"\xa1\x64data\xa1\x61k\x44AAH/";
    assert_eq!(types.read_cbor(Some(id), bytes), Ok(Value::Object(object(r#"{"data":{"k":"AAH/"}}"#))));
}
