//! What types make odd about expressions.

use revisor_schema::Types;

use super::*;
use crate::fixture::{environment, object};

/// The warnings about a policy for deployments of this table.
fn warnings(spec: &str) -> Vec<(String, String)> {
    let types = Types::parse(
        "type,field,shape,presence,number,merge\nDeployment,metadata,Meta,always,1,\nDeployment,spec,Spec,always,2,\n\
         Meta,name,string,nonzero,1,\nSpec,replicas,int32,given,1,\nSpec,limits,map:quantity,nonzero,2,\n",
    )
    .expect("is a table");
    let id = types.id("Deployment").expect("is in the table");
    let kind = GroupVersionKind { group: "apps", version: "v1", kind: "Deployment" };
    let environment = environment();
    let schema = SchemaType::of_built_in(&types, id);
    let check = TypeCheck {
        environment: &environment,
        types: &[CheckedType { kind, schema: Some(schema.clone()) }],
        params: Some(schema),
    };
    let found = check.check(&object(&format!(r#"{{"spec":{spec}}}"#)));
    found.into_iter().map(|warning| (warning.field, warning.warning)).collect()
}

#[test]
fn what_types_know_better_is_told() {
    for (spec, want) in [
        (r#"{"validations":[{"expression":"object.spec.replicas > 1 && oldObject.metadata.name == 'a'"}]}"#, None),
        (r#"{"validations":[{"expression":"object.spec.limits.cpu == '1' && request.name == ''"}]}"#, None),
        (
            r#"{"validations":[{"expression":"true"},{"expression":"object.spec.gone > 1"}]}"#,
            Some((
                "spec.validations[1].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'gone'\n | object.spec.gone > 1\n | \
                 ...........^\n",
            )),
        ),
        (
            r#"{"validations":[{"expression":"true","messageExpression":"object.spec.replicas + 'x'"}]}"#,
            Some((
                "spec.validations[0].messageExpression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_+_' applied to \
                 '(int, string)'\n | object.spec.replicas + 'x'\n | .....................^\n",
            )),
        ),
        (
            r#"{"variables":[{"name":"n","expression":"object.spec.replicas"}],
                "validations":[{"expression":"variables.n == 'x'"}]}"#,
            Some((
                "spec.validations[0].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no matching overload for '_==_' applied to \
                 '(int, string)'\n | variables.n == 'x'\n | ............^\n",
            )),
        ),
        (
            r#"{"paramKind":{"apiVersion":"v1","kind":"Deployment"},"validations":[{"expression":"params.spec.gone == 1"}]}"#,
            Some((
                "spec.validations[0].expression",
                "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'gone'\n | params.spec.gone == 1\n | \
                 ...........^\n",
            )),
        ),
    ] {
        let want: Vec<(String, String)> =
            want.into_iter().map(|(field, warning)| (field.to_owned(), warning.to_owned())).collect();
        assert_eq!(warnings(spec), want, "{spec}");
    }
}
