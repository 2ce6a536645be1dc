//! [`Conversion`]: how an object that is stored in one version is shown in another, and back.
//!
//! Most versions of a built-in resource have one shape and differ by name only; then [`SameShape`] is all there is.

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

/// The conversion of versions that differ by name only.
pub(crate) struct SameShape;

impl Conversion for SameShape {
    fn to_stored(&self, _: &mut Object) {}

    fn to_shown(&self, _: &mut Object) {}
}
