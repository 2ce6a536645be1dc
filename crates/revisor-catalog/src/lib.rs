//! Which resources exist, how each is named, stored and selected, and the rules of its kind.
//!
//! A resource is a row of [`rows`](self) plus a [`Strategy`] where its kind has rules of its own. Everything here is
//! decided once, by [`Catalog::build`] (invariant V1); strategies do no I/O (R1).

/// What people are told about the fields of built-in kinds, compressed: a line for each text, with the type, the field or
/// nothing, and the text as a JSON string, separated by tabs.
pub const PACKED_DESCRIPTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptions.gz"));

mod availability;
mod bootstrap;
mod catalog;
mod checks;
mod columns;
mod conversion;
mod converted_annotations;
mod custom;
mod custom_columns;
mod disabled_fields;
mod features;
mod internal_form;
mod json_path;
mod kinds;
mod metadata;
mod metadata_checks;
mod moment;
mod printers;
mod resource;
mod route;
mod rows;
mod runtime_config;
mod scale;
mod storage_codec;
mod strategy;
mod timed_text;
mod unserved;

pub use availability::CatalogError;
pub use bootstrap::{BootstrapFlowControl, BootstrapObject, BootstrapRole};
pub use catalog::{Catalog, CatalogOptions, GroupVersion, StorageVersion};
pub use columns::{Column, Columns, Completion};
pub use conversion::Conversion;
pub use custom::{
    Beneath, ConversionSample, ConversionWay, Custom, CustomConversion, CustomField, CustomResources, DefinitionChange,
    DefinitionState, Effect, Extent, FieldEffect, FieldTally, FieldUse, FoundEffect, LaidDown, Unconverted,
    WriteUnderWay, WritesUnderWay,
};
pub use custom_columns::PrinterColumn;
pub use features::{Feature, Features};
pub use kinds::apiextensions::{
    API_APPROVAL, CLEANUP_FINALIZER, Condition, DefinedVersion, Definition, ESTABLISHED, FROZEN_VERSIONS,
    NAMES_ACCEPTED, NON_STRUCTURAL_SCHEMA, Names, TERMINATING, TakenNames, api_approval, settle_status,
};
pub use kinds::apiregistration::{custom_registration, is_custom_registration, is_own_registration};
pub use kinds::certificates::certificate_signing_request::RequestedSubject;
pub use kinds::core::service::{ServicePort, ServiceSpec, validate_cluster_ips};
pub use metadata::{
    validate_field_manager, validate_known_finalizers, validate_metadata, validate_metadata_change,
    validate_metadata_update,
};
pub use metadata_checks::MetadataChecks;
pub use moment::Moment;
pub use resource::{DeleteAnswer, DeprecationNotice, Resource, Rules, SelectableField, Subresource, Verb};
pub use route::{ObjectRoute, Route};
pub use rows::BINARY;
pub use runtime_config::{RuntimeConfig, RuntimeConfigError};
pub use scale::{ScalePaths, ScaleSelector};
pub use storage_codec::{StorageCodec, StorageCodecError, StorageMediaType, StoredObject};
pub use strategy::{Circumstances, Part, Places, Requester, Strategy};
pub use timed_text::TimedText;
pub use unserved::Unserved;
