//! [`Conversion`]: how an object that is stored in one version is shown in another, and back.
//!
//! Most versions of a built-in resource have one shape and differ by name only; then [`SameShape`] is all there is.

use std::sync::Arc;

use revisor_object::Object;

/// Changes the shape of objects between a version and the one that they are stored in. Metadata, kind and API version
/// are not its business. Pure, and without loss for every object that can be stored.
pub trait Conversion: Send + Sync + 'static {
    /// Brings an object of this version, defaulted in this version, to the stored shape.
    fn to_stored(&self, object: &mut Object);

    /// The same for an object whose defaults are filled in later, in the stored shape: nothing stands in their way.
    fn to_stored_plainly(&self, object: &mut Object) {
        self.to_stored(object);
    }

    /// Brings a stored object to the shape of this version.
    fn to_shown(&self, object: &mut Object);
}

/// How a version is shown that is stored as another one; each says how it differs from the shape that most have.
pub(crate) fn between(shown: Option<Arc<dyn Conversion>>, stored: Option<Arc<dyn Conversion>>) -> Arc<dyn Conversion> {
    match (shown, stored) {
        (None, None) => Arc::new(SameShape),
        (Some(shown), None) => shown,
        (shown, Some(stored)) => Arc::new(Between { shown: shown.unwrap_or_else(|| Arc::new(SameShape)), stored }),
    }
}

/// The conversion of versions both of which differ from the shape that most have.
struct Between {
    shown: Arc<dyn Conversion>,
    stored: Arc<dyn Conversion>,
}

impl Conversion for Between {
    fn to_stored(&self, object: &mut Object) {
        self.shown.to_stored(object);
        self.stored.to_shown(object);
    }

    fn to_stored_plainly(&self, object: &mut Object) {
        self.shown.to_stored_plainly(object);
        self.stored.to_shown(object);
    }

    fn to_shown(&self, object: &mut Object) {
        self.stored.to_stored(object);
        self.shown.to_shown(object);
    }
}

/// The conversion of versions that differ by name only.
pub(crate) struct SameShape;

impl Conversion for SameShape {
    fn to_stored(&self, _: &mut Object) {}

    fn to_shown(&self, _: &mut Object) {}
}
