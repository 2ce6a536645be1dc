//! Frames, and what is known before the first of them.

use flate2::{Decompress, FlushDecompress};

use super::*;

/// Unpacks the headers of frames that came one after the other.
struct Unpacker(Decompress);

impl Unpacker {
    fn unpack(&mut self, packed: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(1024);
        let first = self.0.decompress_vec(packed, &mut plain, FlushDecompress::Sync);
        if first.is_err_and(|error| error.needs_dictionary().is_some()) {
            self.0.set_dictionary(&dictionary()).expect("is the one that was used");
            let done = usize::try_from(self.0.total_in()).expect("is short");
            self.0.decompress_vec(&packed[done..], &mut plain, FlushDecompress::Sync).expect("is packed");
        }
        plain
    }
}

#[test]
fn the_dictionary_is_the_one_that_everybody_has() {
    // The number by which the first packed header of every SPDY/3.1 connection names it.
    let mut writer = FrameWriter::default();
    let (_, frame) = writer.open(&[]);
    assert_eq!(frame[18..][..6], [0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2]);
}

#[test]
fn streams_are_opened_with_headers() {
    let mut writer = FrameWriter::default();
    let mut unpacker = Unpacker(Decompress::new(true));
    let long = "x".repeat(70_000);
    for (at, value) in ["error", "stdin", &long, "stdout"].into_iter().enumerate() {
        let (stream, frame) = writer.open(&[("streamtype", value)]);
        assert_eq!(stream.0 as usize, 2 * at + 1);
        assert_eq!(frame[..5], [0x80, 3, 0, 1, 0]);
        assert_eq!((&frame[5..8]).get_uint(3) as usize, frame.len() - HEAD);
        assert_eq!((&frame[8..12]).get_u32(), stream.0);
        let mut plain = Vec::new();
        let mut packed = &frame[18..];
        while !packed.is_empty() {
            let before = unpacker.0.total_in();
            plain.extend(unpacker.unpack(packed));
            let taken = usize::try_from(unpacker.0.total_in() - before).expect("is short");
            packed = &packed[taken..];
        }
        let mut want = vec![0, 0, 0, 1, 0, 0, 0, 10];
        want.extend_from_slice(b"streamtype");
        want.put_u32(value.len() as u32);
        want.extend_from_slice(value.as_bytes());
        assert_eq!(plain, want);
    }
}

#[test]
fn what_others_say_is_understood_however_it_comes() {
    let stream = StreamId(3);
    let reply = control(SYN_REPLY, &[0, 0, 0, 3, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
    let window = control(9, &[0, 0, 0, 3, 0, 0, 0, 9]);
    let sent = [
        reply,
        data(stream, b"hello", false),
        window,
        data(stream, b"", true),
        reset(stream),
        control(PING, &2_u32.to_be_bytes()),
        go_away(),
    ]
    .concat();
    let whole = FrameReader::default().take(Bytes::from(sent.clone())).expect("are frames");
    let bytes = Bytes::from_static;
    assert_eq!(
        whole,
        [
            Frame::Reply { stream, is_last: false },
            Frame::Data { stream, bytes: bytes(b"hello"), is_last: false },
            Frame::Data { stream, bytes: bytes(b""), is_last: true },
            Frame::Reset { stream },
            Frame::Ping(2),
            Frame::GoAway,
        ]
    );
    for size in 1..sent.len() {
        let mut reader = FrameReader::default();
        let mut said = Vec::new();
        let mut others = Vec::new();
        for part in sent.chunks(size) {
            for frame in reader.take(Bytes::copy_from_slice(part)).expect("are frames") {
                match frame {
                    Frame::Data { bytes, .. } => said.extend_from_slice(&bytes),
                    other => others.push(other),
                }
            }
        }
        assert_eq!((said.as_slice(), others.len()), (&b"hello"[..], 4), "{size}");
    }
}

#[test]
fn what_is_not_spdy_is_refused() {
    for (name, sent) in [
        ("another version", vec![0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]),
        ("a short reset", vec![0x80, 3, 0, 3, 0, 0, 0, 2, 0, 1]),
        ("an empty ping", vec![0x80, 3, 0, 6, 0, 0, 0, 0]),
    ] {
        assert_eq!(FrameReader::default().take(Bytes::from(sent)), Err(BadFrame), "{name}");
    }
}
