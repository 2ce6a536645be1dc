//! Protobuf, by a small table.

use revisor_object::{Object, Value, parse_json};

use super::*;
use crate::Types;

const TABLE: &str = "type,field,shape,presence,number,merge
T,meta,M,always,1,
T,data,map:bytes,nonzero,2,
T,parts,list:M,nonzero,3,
T,at,time,given,4,
T,count,int32,nonzero,5,
T,any,any,given,6,
T,seen,microtime,given,7,
T,more,orbool:M,given,10,
T,some,orlist:M,given,11,
T,names,ortexts:M,given,12,
T,ints,list:int64,nonzero,13,
T,inner,string,given,14/1,
M,name,string,nonzero,1,
M,on,bool,given,2,
";

fn message(parts: &[(u32, &[u8])]) -> Vec<u8> {
    let field = |(number, bytes): &(u32, &[u8])| [&[(*number as u8) << 3 | 2, bytes.len() as u8], *bytes].concat();
    parts.iter().flat_map(field).collect()
}

fn read(bytes: &[u8]) -> Result<String, ProtobufError> {
    let types = Types::parse(TABLE).expect("a good table");
    types.read_protobuf(types.id("T").expect("is there"), bytes).map(|value| value.to_json())
}

#[test]
fn messages_become_values() {
    let named = message(&[(1, b"n")]);
    let on = [&named[..], &[0x10, 1]].concat();
    let pair = message(&[(1, b"k"), (2, b"\xff\x00")]);
    let time = [&[0x08][..], &[0x80, 0xe2, 0xcf, 0xaa, 0x06], &[0x10, 0xe8, 0x07]].concat();
    let bytes = [
        message(&[
            (1, &named),
            (3, &on),
            (3, &[]),
            (2, &pair),
            (4, &time),
            (7, &time),
            (6, &message(&[(1, br#"{"x":1}"#)])),
        ]),
        vec![0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        // A field that the table does not know.
        message(&[(9, b"?")]),
    ]
    .concat();
    assert_eq!(
        read(&bytes).expect("a message"),
        r#"{"any":{"x":1},"at":"2023-11-14T22:13:20Z","count":-1,"data":{"k":"/wA="},"meta":{"name":"n"},"parts":[{"name":"n","on":true},{}],"seen":"2023-11-14T22:13:20.000001Z"}"#
    );
    assert_eq!(read(&message(&[(4, &[])])), Ok(r#"{"at":null}"#.to_owned()), "no time at all");
}

#[test]
fn one_of_several_shapes_is_read() {
    let named = message(&[(1, b"n")]);
    for (number, content, want) in [
        (10, vec![0x08, 1], r#"{"more":true}"#),
        (10, vec![], r#"{"more":false}"#),
        (10, [&[0x08, 1][..], &message(&[(2, &named)])].concat(), r#"{"more":{"name":"n"}}"#),
        (11, message(&[(1, &named)]), r#"{"some":{"name":"n"}}"#),
        (11, message(&[(2, &named), (2, &[])]), r#"{"some":[{"name":"n"},{}]}"#),
        (12, message(&[(2, b"a"), (2, b"b")]), r#"{"names":["a","b"]}"#),
        (12, vec![], r#"{"names":null}"#),
    ] {
        assert_eq!(read(&message(&[(number, &content)])).as_deref(), Ok(want), "{number}");
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let wrong = |found, field: &str| ProtobufError::WrongWireType { found, field: field.to_owned() };
    for (bytes, want) in [
        (&b"\x0a\x05ab"[..], ProtobufError::Truncated),
        (b"\x0a", ProtobufError::Truncated),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ProtobufError::NegativeLength),
        (b"\x08\x01", wrong(0, "Meta")),
        (b"\x2a\x00", wrong(2, "Count")),
        (b"\x0b", wrong(3, "Meta")),
        (b"\x0c", ProtobufError::EndOfNoGroup("T".to_owned())),
        (b"\x02\x00", ProtobufError::IllegalTag { message: "T".to_owned(), number: 0, tag: 2 }),
        (b"\x9e\x06", ProtobufError::NoWireType(6)),
        (b"\x9b\x06\x9b\x06", ProtobufError::Truncated),
        (b"\x9b\x06\x0a\x01", ProtobufError::Truncated),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ProtobufError::Overflow),
        (b"\x22\x09\x08\xff\xff\xff\xff\xff\xff\xff\x7f", ProtobufError::Value("a time is out of range")),
    ] {
        assert_eq!(read(bytes), Err(want), "{bytes:?}");
    }
    assert!(matches!(read(b"\x32\x03\x0a\x01{"), Err(ProtobufError::Json(_))));
}

#[test]
fn messages_are_read_generously() {
    let group = b"\x9b\x06\x08\x01\x9b\x06\x9c\x06\x9c\x06";
    for (name, bytes, want) in [
        (
            "in parts",
            [message(&[(1, &message(&[(1, b"n")]))]), message(&[(1, &[0x10, 1])])].concat(),
            r#"{"meta":{"name":"n","on":true}}"#,
        ),
        ("the last number", vec![0x28, 1, 0x28, 2], r#"{"count":2}"#),
        ("a large number", vec![0x28, 0x81, 0x80, 0x80, 0x80, 0x10], r#"{"count":1}"#),
        ("another truth", message(&[(1, &[0x10, 7])]), r#"{"meta":{"on":true}}"#),
        ("a group", group.to_vec(), "{}"),
        ("other wire types", vec![0xf9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd, 1, 0, 0, 0, 0], "{}"),
        ("packed", vec![0x6a, 3, 1, 0xac, 2, 0x68, 5], r#"{"ints":[1,300,5]}"#),
        (
            "a key twice",
            message(&[(2, &message(&[(1, b"k"), (2, b"a")])), (2, &message(&[(2, b"b"), (1, b"k")]))]),
            r#"{"data":{"k":"Yg=="}}"#,
        ),
        ("a key alone", message(&[(2, &message(&[(1, b"k")]))]), r#"{"data":{"k":""}}"#),
        (
            "no text",
            message(&[(1, &message(&[(1, b"\xff\xe2\x82")]))]),
            "{\"meta\":{\"name\":\"\u{fffd}\u{fffd}\u{fffd}\"}}",
        ),
    ] {
        assert_eq!(read(&bytes).as_deref(), Ok(want), "{name}");
    }
}

#[test]
fn deep_messages_are_read_and_too_deep_ones_are_not() {
    let types = Types::parse("type,field,shape,presence,number,merge\nT,t,T,given,1,\n").expect("a good table");
    let nested = |depth: usize| {
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..depth {
            let mut outer = vec![0x0a];
            push_varint(bytes.len() as u64, &mut outer);
            outer.extend_from_slice(&bytes);
            bytes = outer;
        }
        bytes
    };
    let id = types.id("T").expect("is there");
    assert!(types.read_protobuf(id, &nested(MAX_DEPTH - 1)).is_ok());
    assert_eq!(types.read_protobuf(id, &nested(MAX_DEPTH)), Err(ProtobufError::TooDeep));
}

fn object(json: &str) -> Object {
    match parse_json(json.as_bytes()).expect("JSON").value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

/// What is always there is written although it is empty, and only that.
#[test]
fn values_are_written_as_the_original_writes_them() {
    let types = Types::parse(TABLE).expect("a good table");
    let id = types.id("T").expect("is there");
    let always = b"\x0a\x02\x0a\x00";
    for (json, want) in [
        ("{}", b"\x28\x00".to_vec()),
        (r#"{"count":-1}"#, b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01".to_vec()),
        (
            r#"{"data":{"b":"","a":"AAH/"}}"#,
            b"\x12\x08\x0a\x01a\x12\x03\x00\x01\xff\x12\x05\x0a\x01b\x12\x00\x28\x00".to_vec(),
        ),
        (r#"{"parts":[{"name":"n","on":false},{}]}"#, b"\x1a\x05\x0a\x01n\x10\x00\x1a\x02\x0a\x00\x28\x00".to_vec()),
        (r#"{"parts":[]}"#, b"\x28\x00".to_vec()),
        (r#"{"at":"2023-11-14T22:13:20Z"}"#, b"\x22\x08\x08\x80\xe2\xcf\xaa\x06\x10\x00\x28\x00".to_vec()),
        (r#"{"any":{"x":1}}"#, b"\x28\x00\x32\x09\x0a\x07{\"x\":1}".to_vec()),
        (r#"{"seen":"2023-11-14T22:13:20.000001Z"}"#, b"\x28\x00\x3a\x09\x08\x80\xe2\xcf\xaa\x06\x10\xe8\x07".to_vec()),
        (r#"{"more":true}"#, b"\x28\x00\x52\x02\x08\x01".to_vec()),
        (r#"{"more":{}}"#, b"\x28\x00\x52\x06\x08\x01\x12\x02\x0a\x00".to_vec()),
        (r#"{"some":[{}]}"#, b"\x28\x00\x5a\x04\x12\x02\x0a\x00".to_vec()),
        (r#"{"names":["a"]}"#, b"\x28\x00\x62\x03\x12\x01a".to_vec()),
        (r#"{"ints":[7,300]}"#, b"\x28\x00\x68\x07\x68\xac\x02".to_vec()),
        (r#"{"inner":"i"}"#, b"\x28\x00\x72\x03\x0a\x01i".to_vec()),
    ] {
        let mut want = [&always[..], &want].concat();
        if !json.contains("inner") {
            want.extend_from_slice(b"\x72\x00");
        }
        let written = types.write_protobuf(id, &object(json));
        assert_eq!(written, want, "{json}");
        let read = types.read_protobuf(id, &written).expect("what was written");
        let again = types.write_protobuf(id, read.as_object().expect("an object"));
        assert_eq!(again, want, "{json}, read and written again");
    }
}

#[test]
fn long_messages_are_written() {
    let types = Types::parse(TABLE).expect("a good table");
    let id = types.id("T").expect("is there");
    for length in [100, 1000, 1020, 5000, 100_000] {
        let name = "x".repeat(length);
        let written = types.write_protobuf(id, &object(&format!(r#"{{"meta":{{"name":"{name}"}}}}"#)));
        let read = types.read_protobuf(id, &written).expect("what was written");
        let found = read.as_object().and_then(|read| read.at(&["meta", "name"])).and_then(Value::as_str);
        assert_eq!(found, Some(name.as_str()), "{length}");
    }
}

#[test]
fn envelopes_name_what_is_in_them() {
    let names = message(&[(1, b"v1"), (2, b"ConfigMap")]);
    let bytes = [&MAGIC[..], &message(&[(1, &names), (2, b"raw"), (4, b"")])].concat();
    let want = Envelope { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), raw: b"raw" };
    assert_eq!(Envelope::read(&bytes), Ok(want));
    let made = [envelope_start("v1", "ConfigMap", 3), b"raw".to_vec(), ENVELOPE_END.to_vec()].concat();
    assert_eq!(Envelope::read(&made), Envelope::read(&bytes));
    for (bytes, want) in [
        (&b"{}"[..], ProtobufError::NoMagic),
        (b"", ProtobufError::NoData),
        (MAGIC, ProtobufError::NoBody),
        (b"k8s\0\0", ProtobufError::IllegalTag { message: "Unknown".to_owned(), number: 0, tag: 0 }),
    ] {
        assert_eq!(Envelope::read(bytes), Err(want), "{bytes:?}");
    }
}

#[test]
fn entries_of_maps_are_read_as_the_generated_code_reads_them() {
    let table = "type,field,shape,presence,number,merge\nT,data,map:string,nonzero,1,\nT,name,string,nonzero,2,\n";
    let types = Types::parse(table).expect("a good table");
    let id = types.id("T").expect("is there");
    let read = |bytes: &[u8]| types.read_protobuf(id, bytes).map(|value| value.to_json());
    // The key reaches beyond its entry; what follows begins where the entry ends.
    assert_eq!(read(b"\x0a\x03\x0a\x03a\x12\x01b").as_deref(), Ok(r#"{"data":{"a\u0012\u0001":""},"name":"b"}"#));
    assert_eq!(read(b"\x0a\x03\x0a\x07a\x12\x01b"), Err(ProtobufError::Truncated));
    // What is passed over may not.
    assert_eq!(read(b"\x0a\x03\x1a\x03a\x12\x01b"), Err(ProtobufError::Truncated));
}

#[test]
fn what_is_wrong_first_is_told_of() {
    let table = "type,field,shape,presence,number,merge\nT,part,P,nonzero,1,\nP,name,string,nonzero,1,\n";
    let types = Types::parse(table).expect("a good table");
    let id = types.id("T").expect("is there");
    // The name in the part is cut off; a tag behind the part is none.
    assert_eq!(types.read_protobuf(id, b"\x0a\x02\x0a\x05\x00"), Err(ProtobufError::Truncated));
    assert_eq!(
        types.read_protobuf(id, b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        Err(ProtobufError::NegativeLength)
    );
}

#[test]
fn a_message_is_made_of_canonical_json_as_it_lies_there() {
    let table = format!(
        "{TABLE}T,raw,raw,given,15,\nT,kinds,map:M,nonzero,16,\nT,when,intorstring,given,17,\nT,on,bool,nonzero,18,\nT,cost,double,given,19,\nT,size,quantity,given,20,\nT,wait,duration,given,21,\n"
    );
    let types = Types::parse(&table).expect("a good table");
    let id = types.id("T").expect("is there");
    let whole = r#"{"meta":{"name":"n\"\u0001é","on":false},"data":{"a":"/wA=","b":""},"parts":[{"name":"x"},{"name":""}],"at":"2024-02-29T23:59:59Z","count":-7,"any":{"x":[1,{"y\n":null}],"z":"a,]}\\"},"seen":"2023-11-14T22:13:20.000001Z","more":{"name":"m"},"some":[{"name":"s"}],"names":["p","q\t"],"ints":[1,-2,9223372036854775807],"inner":"i","raw":{"b":1,"a":1e2},"kinds":{"a":{"name":""},"b":{"name":"2"}},"when":"50%","on":true,"cost":2.5,"size":"500m","wait":"1m30s"}"#;
    for (text, is_canonical) in [
        (whole, true),
        ("{}", true),
        (
            r#"{"meta":{"name":""},"at":null,"any":null,"parts":[],"data":{},"more":true,"some":{"name":"s"},"when":-5}"#,
            false,
        ),
        (r#"{"meta":{"name":""},"at":null,"count":0,"any":"text","more":true,"some":{"name":"s"},"when":-5}"#, true),
        (r#"{"any":12}"#, true),
        (r#"{"any":[]}"#, true),
        (r#"{"at":"2024-02-30T00:00:00Z","seen":"2024-02-01T00:00:00Z"}"#, true),
        // What is not canonical is read thoroughly.
        (r#" {"raw":{"b": 1}}"#, false),
        (r#"{"count":1,"meta":{"name":"behind"}}"#, false),
        (r#"{"meta":{"name":5}}"#, false),
        (r#"{"meta":[]}"#, false),
        (r#"{"unknown":1}"#, false),
        (r#"{"data":{"b":"","a":""}}"#, false),
        (r#"{"data":{"a\n":""}}"#, false),
        (r#"{"count":1,"count":2}"#, false),
        (r#"{"any":{"x": 1}}"#, false),
    ] {
        let read = parse_json(text.as_bytes()).expect(text).value;
        let mut value = read;
        types.keep_raw(id, &mut value, text.as_bytes());
        let want = types.write_protobuf(id, value.as_object().expect("an object"));
        assert_eq!(types.protobuf_of_json(id, text.as_bytes()), Some(want), "{text}");
        assert_eq!(types.protobuf_of_canonical(id, text.as_bytes()).is_some(), is_canonical, "{text}");
    }
    for damaged in
        ["", "{", "[]", "null", "{\"count\":1", "{\"any\":{", "{\"any\":}", "{\"meta\":{\"name\":\"\\", "{}}"]
    {
        assert_eq!(types.protobuf_of_json(id, damaged.as_bytes()), None, "{damaged}");
    }
    let deep = format!("{{\"any\":{}{}}}", "[".repeat(300), "]".repeat(300));
    let value = parse_json(deep.as_bytes()).expect("is not too deep").value;
    let want = types.write_protobuf(id, value.as_object().expect("an object"));
    assert_eq!(types.protobuf_of_json(id, deep.as_bytes()), Some(want));
}
