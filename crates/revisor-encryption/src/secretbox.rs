//! XSalsa20 and Poly1305, which NaCl calls a secret box: the first 24 bytes are the nonce, the next 16 the tag. The
//! storage key is not authenticated, as in the original.

use aws_lc_rs::{constant_time, rand};
use cryptoxide::mac::Mac;
use cryptoxide::poly1305::Poly1305;
use revisor_store::TransformError;

use crate::cipher::Cipher;
use crate::salsa20::{self, Keystream};

const NONCE: usize = 24;
const TAG: usize = 16;
pub(crate) const KEY: usize = 32;

/// A secret box with one key (`NewSecretboxTransformer`).
pub(crate) struct Secretbox([u8; KEY]);

impl Secretbox {
    pub(crate) fn new(key: &[u8; KEY]) -> Secretbox {
        Secretbox(*key)
    }

    fn seal_with(&self, nonce: &[u8; NONCE], out: &mut Vec<u8>, plain: &[u8]) {
        let message = Message::new(&self.0, nonce);
        out.extend_from_slice(nonce);
        let tag = out.len();
        out.extend_from_slice(&[0; TAG]);
        let text = out.len();
        out.extend_from_slice(plain);
        let mac = message.mac();
        message.combine(&mut out[text..]);
        let sealed = mac.tag(&out[text..]);
        out[tag..text].copy_from_slice(&sealed);
    }
}

impl Cipher for Secretbox {
    fn extra(&self) -> usize {
        NONCE + TAG
    }

    fn seal_into(&self, out: &mut Vec<u8>, plain: &[u8], _: &[u8]) -> Result<(), TransformError> {
        let mut nonce = [0; NONCE];
        rand::fill(&mut nonce).map_err(|_| TransformError::new("unable to read sufficient random bytes"))?;
        self.seal_with(&nonce, out, plain);
        Ok(())
    }

    fn open(&self, sealed: &[u8], _: &[u8]) -> Result<Vec<u8>, TransformError> {
        let parts = sealed.split_first_chunk::<NONCE>();
        let parts = parts.and_then(|(nonce, sealed)| Some((nonce, sealed.split_first_chunk::<TAG>()?)));
        let Some((nonce, (tag, text))) = parts else {
            return Err(TransformError::new("the stored data was shorter than the required size"));
        };
        let message = Message::new(&self.0, nonce);
        // In the original's words, which are about something else.
        constant_time::verify_slices_are_equal(&message.mac().tag(text), tag)
            .map_err(|_| TransformError::new("output array was not large enough for encryption"))?;
        let mut plain = text.to_vec();
        message.combine(&mut plain);
        Ok(plain)
    }
}

/// What one nonce makes of the key: the beginning of the keystream is the key of the tag, the rest is for the text.
struct Message {
    stream: Keystream,
    first: [u8; salsa20::CHUNK],
}

/// A key with which one tag is made.
struct MacKey([u8; KEY]);

impl Message {
    fn new(key: &[u8; KEY], nonce: &[u8; NONCE]) -> Message {
        let mut stream = Keystream::new(key, nonce);
        let first = stream.next();
        Message { stream, first }
    }

    fn mac(&self) -> MacKey {
        MacKey(std::array::from_fn(|at| self.first[at]))
    }

    /// Encrypts a text, or decrypts it.
    fn combine(mut self, text: &mut [u8]) {
        let rest = &self.first[KEY..];
        let (head, tail) = text.split_at_mut(text.len().min(rest.len()));
        combine(head, rest);
        for chunk in tail.chunks_mut(salsa20::CHUNK) {
            combine(chunk, &self.stream.next());
        }
    }
}

impl MacKey {
    fn tag(self, text: &[u8]) -> [u8; TAG] {
        let (mut mac, mut tag) = (Poly1305::new(&self.0), [0; TAG]);
        mac.input(text);
        mac.raw_result(&mut tag);
        tag
    }
}

fn combine(text: &mut [u8], stream: &[u8]) {
    text.iter_mut().zip(stream).for_each(|(byte, other)| *byte ^= other);
}

#[cfg(test)]
mod tests {
    use crypto_secretbox::aead::{Aead as _, KeyInit as _};
    use crypto_secretbox::{Nonce, XSalsa20Poly1305};

    use super::*;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7 + at / 256) as u8).collect()
    }

    #[test]
    fn what_is_sealed_is_opened_again_and_nothing_else_is() {
        let cipher = Secretbox::new(&[7; 32]);
        let mut sealed = Vec::new();
        cipher.seal_into(&mut sealed, b"a secret", b"/a").expect("is sealed");
        assert_eq!(sealed.len(), cipher.extra() + b"a secret".len());
        assert_eq!(cipher.open(&sealed, b"/b").expect("is opened"), b"a secret");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(cipher.open(&changed, b"/a").is_err(), "changed at {at}");
            assert!(cipher.open(&sealed[..at], b"/a").is_err(), "cut at {at}");
        }
    }

    /// What NaCl itself is tested with (`tests/secretbox.c`).
    #[test]
    fn a_box_of_nacl_is_what_it_makes() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = text.as_bytes().chunks(2).map(|digits| std::str::from_utf8(digits).expect("are digits"));
            digits.map(|digits| u8::from_str_radix(digits, 16).expect("are digits")).collect()
        };
        let key = hex("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389");
        let nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
        let plain = hex(
            "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01\
             233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd\
             4924ca1c60902e52f0a089bc76897040e082f937763848645e0705",
        );
        let want = hex(
            "f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c\
             98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfea\
             bd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5",
        );
        let (key, nonce) = (key.try_into().expect("has 32 bytes"), nonce.try_into().expect("has 24 bytes"));
        let mut sealed = Vec::new();
        Secretbox::new(&key).seal_with(&nonce, &mut sealed, &plain);
        assert_eq!(sealed[NONCE..], want);
    }

    #[test]
    fn another_implementation_opens_its_boxes_and_makes_the_same() {
        let lengths = (0..600).chain([1_000, 4_095, 4_096, 70_001]);
        for length in lengths {
            let (key, plain) = ([length as u8; 32], text(length));
            let nonce: [u8; NONCE] = std::array::from_fn(|at| (length >> (at % 4)) as u8 ^ at as u8);
            let cipher = Secretbox::new(&key);
            let mut sealed = Vec::new();
            cipher.seal_with(&nonce, &mut sealed, &plain);
            let other = XSalsa20Poly1305::new(&key.into());
            let theirs = other.encrypt(Nonce::from_slice(&nonce), &*plain).expect("is sealed");
            assert!(sealed[..NONCE] == nonce && sealed[NONCE..] == theirs, "{length} bytes");
            assert!(cipher.open(&sealed, b"").expect("is opened") == plain, "{length} bytes");
        }
    }
}
