//! [`Encoding`]: the ways in which answers are written, and what each is called.

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
    /// Only where it is switched on.
    Cbor,
}

impl Encoding {
    /// Those that are always offered, in the order of preference for clients that have none.
    pub(crate) const ALL: &[Encoding] = &[Encoding::Json, Encoding::Yaml, Encoding::Protobuf];

    /// The same where CBOR is switched on.
    pub(crate) const ALL_WITH_CBOR: &[Encoding] = &[Encoding::Json, Encoding::Yaml, Encoding::Protobuf, Encoding::Cbor];

    /// Those that are offered.
    pub(crate) fn offered(has_cbor: bool) -> &'static [Encoding] {
        if has_cbor { Encoding::ALL_WITH_CBOR } else { Encoding::ALL }
    }

    /// Those in which everything can be said that has any shape.
    pub(crate) const TEXTS: &[Encoding] = &[Encoding::Json, Encoding::Yaml];

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
            Encoding::Cbor => "application/cbor",
        }
    }

    /// Whether it is text, and not bytes.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Encoding::Json | Encoding::Yaml)
    }

    /// What a watch is offered as; `None` if it cannot be had so.
    pub(crate) fn stream_type(self) -> Option<&'static str> {
        match self {
            Encoding::Json => Some("application/json;stream=watch"),
            Encoding::Yaml => None,
            Encoding::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Encoding::Cbor => Some("application/cbor-seq"),
        }
    }

    /// What a watch is answered as. JSON is the one that does not say that it is a stream.
    pub(crate) fn watch_type(self) -> &'static str {
        match self {
            Encoding::Json => self.media_type(),
            _ => self.stream_type().unwrap_or(self.media_type()),
        }
    }

    /// The types of some encodings.
    pub(crate) fn media_types(encodings: &[Encoding]) -> Vec<&'static str> {
        encodings.iter().map(|encoding| encoding.media_type()).collect()
    }

    /// The types in which some encodings stream.
    pub(crate) fn stream_types(encodings: &[Encoding]) -> Vec<&'static str> {
        encodings.iter().filter_map(|encoding| encoding.stream_type()).collect()
    }
}
