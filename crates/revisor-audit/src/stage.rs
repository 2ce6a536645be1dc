//! [`Level`] and [`Stage`]: how much is written of a request, and when.

/// How much is written of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    None,
    /// Who, what, when; no objects.
    Metadata,
    /// That, and what was sent.
    Request,
    /// That, and what was answered.
    RequestResponse,
}

impl Level {
    /// All of them.
    pub const ALL: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    /// Its name in policies and events.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// When something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request has come.
    RequestReceived,
    /// The answer of a request that lasts has begun.
    ResponseStarted,
    /// The answer was sent.
    ResponseComplete,
    /// Serving it ended in a panic.
    Panic,
}

impl Stage {
    /// All of them.
    pub const ALL: [Stage; 4] = [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    /// Its name in policies and events.
    pub fn name(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// Some stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageSet(u8);

impl StageSet {
    /// Adds one.
    pub fn insert(&mut self, stage: Stage) {
        self.0 |= 1 << stage as u8;
    }

    /// Whether it is among them.
    pub fn contains(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// Those of both.
    pub fn union(self, other: StageSet) -> StageSet {
        StageSet(self.0 | other.0)
    }
}
