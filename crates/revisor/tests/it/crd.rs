//! `revisor crd`: Conversions in files, checked and used without a server.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const DEFINITION: &str = r#"# what a shop sells
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.shop.example.com
spec:
  group: shop.example.com
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              timeoutSeconds: {type: integer, minimum: 0, maximum: 99999}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              count: {type: integer}
              timeout: {type: string, pattern: "^(0|[1-9][0-9]{0,4})s$", maxLength: 6}
              mode: {type: string}
"#;

/// A Conversion in which seconds become a text by this expression.
fn conversion(forward: &str) -> String {
    format!(
        r#"apiVersion: versioning.revisor.dev/v1alpha1
kind: Conversion
metadata:
  name: widgets.shop.example.com
spec:
  steps:
  - from: v1
    to: v2
    rules:
    - move: {{from: .spec.size, to: .spec.count}}
    - compute:
        from: {{seconds: .spec.timeoutSeconds}}
        to: {{text: .spec.timeout}}
        forward: {{text: "{forward}"}}
        backward: {{seconds: "int(text.substring(0, text.size() - 1))"}}
"#
    )
}

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the program in a folder.
fn run(folder: &Path, words: &[&str], input: &str) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_revisor"))
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("asked once");
    // A program that needs no input may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder with a definition, a Conversion that keeps the laws, and one that does not.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file can be written");
    write("crd.yaml", DEFINITION);
    write("conv.yaml", &conversion("string(seconds) + 's'"));
    write("lossy.yaml", &conversion("string(seconds / 2 * 2) + 's'"));
    write("wrong.yaml", &conversion("seconds + 1").replace(".spec.size", ".spec.nope"));
    write("other.yaml", &conversion("'0s'").replace("widgets.shop", "gadgets.shop"));
    folder
}

#[test]
fn the_laws_are_checked_without_a_server() {
    let folder = folder();
    let prove = |words: &[&str]| run(folder.path(), &[&["crd", "prove"], words].concat(), "");
    let good = prove(&["crd.yaml", "conv.yaml"]);
    assert_eq!((good.code, good.err.as_str()), (Some(0), ""), "{}", good.out);
    assert!(good.out.starts_with("widgets.shop.example.com\nspec.steps[0]: v1 to v2: Tested ("), "{}", good.out);

    let lossy = prove(&["crd.yaml", "lossy.yaml"]);
    let lines: Vec<&str> = lossy.out.lines().collect();
    assert_eq!(lossy.code, Some(1), "{}", lossy.out);
    assert!(lines[1].starts_with("spec.steps[0].rules[1]: L1: "), "{}", lossy.out);
    let shown = |at: usize, label: &str| -> Value {
        let json = lines[at].strip_prefix(label).unwrap_or_else(|| panic!("{}", lossy.out));
        serde_json::from_str(json).expect("is JSON")
    };
    assert_eq!(shown(2, "object: ")["spec"]["timeoutSeconds"], 1);
    assert_eq!(shown(3, "becomes: ")["spec"]["timeout"], "0s");
    assert_eq!(shown(4, "back: ")["spec"]["timeoutSeconds"], 0);

    let wrong = prove(&["crd.yaml", "wrong.yaml"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.out);
    for want in ["spec.steps[0].rules[0].move.from: Invalid value", "spec.steps[0].rules[1].compute.forward.text: "] {
        assert!(wrong.out.contains(want), "{}", wrong.out);
    }

    let read = |words: &[&str]| -> Value { serde_json::from_str(&prove(words).out).expect("is JSON") };
    let good = read(&["crd.yaml", "conv.yaml", "-o", "json"]);
    assert_eq!((&good[0]["accepted"], &good[0]["steps"][0]["verdict"]), (&true.into(), &"Tested".into()), "{good}");
    let lossy = read(&["crd.yaml", "lossy.yaml", "-o", "json"]);
    assert_eq!((&lossy[0]["accepted"], &lossy[0]["broken"][0]["law"]), (&false.into(), &"L1".into()), "{lossy}");
    assert_eq!(lossy[0]["broken"][0]["back"]["spec"]["timeoutSeconds"], 0, "{lossy}");
    let wrong = read(&["crd.yaml", "wrong.yaml", "-o", "json"]);
    assert_eq!(wrong[0]["errors"][0]["field"], "spec.steps[0].rules[0].move.from", "{wrong}");

    for (words, want) in [
        (&["missing.yaml", "conv.yaml"], "missing.yaml"),
        (&["conv.yaml", "conv.yaml"], "conv.yaml: there is no CustomResourceDefinition"),
        (&["crd.yaml", "crd.yaml"], "crd.yaml: there is no Conversion"),
        (&["crd.yaml", "other.yaml"], "must be named like one of them: widgets.shop.example.com"),
    ] {
        let ended = prove(words);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
        assert!(ended.err.contains(want), "{}", ended.err);
    }
    assert!(prove(&["--help"]).out.contains("revisor crd prove crd.yaml conversion.yaml"));
}

#[test]
fn files_are_converted_and_lose_nothing() {
    let folder = folder();
    let convert = |to: &str, input: &str| {
        let words = ["crd", "convert", "--crd", "crd.yaml", "--conversion", "conv.yaml", "--to", to];
        run(folder.path(), &words, input)
    };
    let input = "# the first\napiVersion: shop.example.com/v2\nkind: Widget\nmetadata:\n  name: a\n  labels: {z: gold}\nspec:\n  \
                 mode: fast\n  count: 1\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c} # stays\ndata: {k: v}\n---\n\
                 apiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: b\nspec:\n  size: 2\n  timeoutSeconds: 30\n";
    let there = convert("v1", input);
    assert_eq!((there.code, there.err.as_str()), (Some(0), ""));
    let documents: Vec<&str> = there.out.split("---\n").collect();
    let first = "# the first\napiVersion: shop.example.com/v1\nkind: Widget\nmetadata:\n  name: a\n  labels:\n    z: gold\n  \
                 annotations:\n    versioning.revisor.dev/kept: \"{\\\"v2\\\":{\\\".spec\\\":{\\\".mode\\\":[\\\"fast\\\"]}}}\"\n\
                 spec:\n  size: 1\n";
    assert_eq!(documents[0], first);
    assert_eq!(documents[1..], input.split("---\n").collect::<Vec<_>>()[1..], "others pass as they are");

    let back = convert("v2", &there.out);
    assert_eq!((back.code, back.err.as_str()), (Some(0), ""));
    assert!(back.out.starts_with("# the first\napiVersion: shop.example.com/v2\n"), "{}", back.out);
    assert!(!back.out.contains("kept") && back.out.contains("mode: fast"), "{}", back.out);
    assert!(back.out.ends_with("spec:\n  count: 2\n  timeout: 30s\n"), "{}", back.out);

    let list = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"shop.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}]}"#;
    let listed: Value = serde_json::from_str(&convert("v2", list).out).expect("JSON stays JSON");
    assert_eq!((&listed["items"][0]["spec"]["count"], &listed["apiVersion"]), (&3.into(), &"v1".into()));

    let odd =
        "apiVersion: shop.example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1, colour: red} # why\n";
    let noted = convert("v2", odd);
    assert_eq!(noted.code, Some(0));
    assert!(noted.err.contains("spec.colour") && noted.err.contains("comments"), "{}", noted.err);

    for (input, want) in [
        (
            "apiVersion: shop.example.com/v9\nkind: Widget\nmetadata: {name: a}\n",
            "has no version \"shop.example.com/v9\"",
        ),
        ("a: [\n", "document 1"),
        (
            "kind: ConfigMap\n---\napiVersion: shop.example.com/v2\nkind: Widget\nmetadata: {name: bad}\nspec: {timeout: x}\n",
            "document 2 (from line 3 on): bad: spec.steps[0].rules[1]",
        ),
        (
            "apiVersion: shop.example.com/v1\nkind: Widget\nmetadata: {name: a, annotations: {versioning.revisor.dev/kept: x}}\n",
            "damaged",
        ),
    ] {
        let ended = convert(
            "v1",
            &input.replace("v1\nkind: Widget\nmetadata: {name: a, ann", "v2\nkind: Widget\nmetadata: {name: a, ann"),
        );
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{input}: {}", ended.err);
        assert!(ended.err.contains(want), "{}", ended.err);
    }
    let unknown = convert("v9", input);
    assert_eq!((unknown.code, unknown.out.as_str()), (Some(2), ""));
    assert!(unknown.err.contains("has no version \"v9\": it has v1, v2"), "{}", unknown.err);
}

#[test]
fn rules_are_inferred_and_hold() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file can be written");
    let of = |version: &str, fields: &str| {
        let (head, _) = DEFINITION.split_once("  - name: v1\n").expect("has versions");
        format!(
            "{head}  - name: {version}\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        \
             type: object\n        properties: {{spec: {{type: object, properties: {{{fields}}}}}}}\n"
        )
    };
    let tls = "{type: object, properties: {mode: {type: string, enum: [Fast, Safe]}, ca: {type: string}}}";
    write("old.yaml", &of("v1", &format!("image: {{type: string}}, tls: {tls}, oldNote: {{type: boolean}}")));
    write("new.yaml", &of("v2", &format!("image: {{type: string}}, validation: {tls}")));
    let infer = |words: &[&str]| run(folder.path(), &[&["crd", "infer"], words].concat(), "");
    let made = infer(&["old.yaml", "new.yaml"]);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""), "{}", made.out);
    let want = "spec:
  steps:
  - from: v1
    to: v2
    # only v1 has these, and they are kept for it: .spec.oldNote
    rules:
    # sure: the same shape, which no other field has
    - move: {from: .spec.tls, to: .spec.validation}
";
    assert!(made.out.ends_with(want) && made.out.contains("\n# It keeps the laws: proved.\n"), "{}", made.out);
    // What is printed can be used as it is.
    let new =
        of("v2", &format!("image: {{type: string}}, validation: {tls}")).replace("storage: true", "storage: false");
    let (_, second) = new.split_once("  - name: v2").expect("has a version");
    let both = of("v1", &format!("image: {{type: string}}, tls: {tls}, oldNote: {{type: boolean}}"));
    write("both.yaml", &format!("{both}  - name: v2{second}"));
    write("made.yaml", &made.out);
    assert_eq!(run(folder.path(), &["crd", "prove", "both.yaml", "made.yaml"], "").code, Some(0));
    assert_eq!(infer(&["both.yaml"]).out, made.out, "two versions of one definition say the same");
    assert_eq!(infer(&["both.yaml", "--from=v1", "--to=v2"]).out, made.out);

    let json = infer(&["old.yaml", "new.yaml", "-o", "json"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!((&json[0]["holds"], &json[0]["steps"][0]["proposals"][0]["sureness"]), (&true.into(), &"sure".into()));
    // What does not hold yet says why, in comments that leave it a Conversion.
    write(
        "less.yaml",
        &of("v2", "tls: {type: object, properties: {mode: {type: string, enum: [Fast]}, ca: {type: string}}}"),
    );
    let unsure = infer(&["old.yaml", "less.yaml"]);
    assert_eq!(unsure.code, Some(1), "{}", unsure.out);
    assert!(
        unsure.out.contains("# It does not keep the laws yet:\n# spec.steps[0]")
            && unsure.out.contains("\n# object: {"),
        "{}",
        unsure.out
    );

    write("other.yaml", &of("v2", "").replace("widgets.shop", "gadgets.shop"));
    for (words, told) in [
        (&["old.yaml", "missing.yaml"][..], "missing.yaml"),
        (&["conv.yaml"], "there is no CustomResourceDefinition"),
        (&["old.yaml"], "has one version, and nothing to convert it to"),
        (
            &["old.yaml", "other.yaml"],
            "other.yaml, document 1 (from line 1 on): old.yaml has no definition of this name",
        ),
        (&["both.yaml", "--from=v1", "--to=v7"], "there is no version \"v7\": there are v1, v2"),
    ] {
        let refused = infer(words);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{words:?}");
        assert!(refused.err.contains(told), "{told}: {}", refused.err);
    }
}

/// Definitions of `v1beta1` lie in many repositories still, and are read as what they would be in `v1`.
#[test]
fn definitions_of_v1beta1_are_read_too() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file can be written");
    let beta = DEFINITION
        .replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
        .replace("spec:\n  group", "spec:\n  preserveUnknownFields: false\n  group");
    assert!(beta.contains("preserveUnknownFields: false"), "{beta}");
    write("beta.yaml", &beta);
    let proved = run(folder.path(), &["crd", "prove", "crd.yaml", "conv.yaml"], "");
    let of_beta = run(folder.path(), &["crd", "prove", "beta.yaml", "conv.yaml"], "");
    assert_eq!((of_beta.code, &of_beta.out, &of_beta.err), (proved.code, &proved.out, &proved.err));
    let inferred = run(folder.path(), &["crd", "infer", "crd.yaml"], "");
    let of_beta = run(folder.path(), &["crd", "infer", "beta.yaml"], "");
    assert_eq!((of_beta.code, &of_beta.out, &of_beta.err), (inferred.code, &inferred.out, &inferred.err));
    assert!(!of_beta.out.is_empty());
}

/// What cannot be used is told with its file, its line and what to do about it.
#[test]
fn bad_files_are_told_with_their_line_and_all_that_is_wrong() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file can be written");
    write("broken.yaml", &format!("{DEFINITION}---\nspec:\n  a: [1,\n  b: 2\n"));
    write("alpha.yaml", &DEFINITION.replace("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1alpha1"));
    let several =
        DEFINITION.replace("name: widgets.shop", "name: gadgets.shop").replace("    schema:\n", "    shape:\n");
    write("several.yaml", &several);
    let items: String = DEFINITION.lines().skip(1).map(|line| format!("  {line}\n")).collect();
    write("list.yaml", &format!("apiVersion: v1\nkind: List\nitems:\n-{}", &items[1..]));
    let fields: String = (0..5_000)
        .map(|number| format!("              f{number}: {{type: string, description: {}}}\n", "x".repeat(180)))
        .collect();
    write(
        "huge.yaml",
        &DEFINITION.replace(
            "              mode: {type: string}\n",
            &format!("              mode: {{type: string}}\n{fields}"),
        ),
    );
    write("later.yaml", &conversion("string(seconds) + 's'").replace("v1alpha1", "v1alpha9"));
    std::fs::write(folder.path().join("binary.yaml"), [0xff, 0xfe]).expect("a file can be written");
    for (definitions, conversions, code, wants) in [
        ("broken.yaml", "conv.yaml", 2, &["broken.yaml, document 2", "line 39"][..]),
        ("alpha.yaml", "conv.yaml", 2, &["alpha.yaml, document 1", "apiextensions.k8s.io/v1alpha1", "write it so"]),
        (
            "several.yaml",
            "conv.yaml",
            2,
            &["metadata.name: Invalid value", "spec.versions[0].schema.openAPIV3Schema: Required", "spec.versions[1]"],
        ),
        ("binary.yaml", "conv.yaml", 2, &["binary.yaml is no text"]),
        ("nowhere.yaml", "conv.yaml", 2, &["cannot read nowhere.yaml"]),
        ("conv.yaml", "conv.yaml", 2, &["there is no CustomResourceDefinition in this file"]),
        ("crd.yaml", "crd.yaml", 2, &["there is no Conversion of versioning.revisor.dev in this file"]),
        ("crd.yaml", "other.yaml", 2, &["other.yaml, document 1", "widgets.shop.example.com"]),
        ("crd.yaml", "later.yaml", 2, &["later.yaml, document 1", "only versioning.revisor.dev/v1alpha1"]),
        ("list.yaml", "conv.yaml", 0, &[]),
        ("huge.yaml", "conv.yaml", 0, &[]),
    ] {
        let done = run(folder.path(), &["crd", "prove", definitions, conversions], "");
        assert_eq!(done.code, Some(code), "{definitions}: {}{}", done.out, done.err);
        for want in wants {
            assert!(done.err.contains(want), "{want} in {}", done.err);
        }
    }
    let unknown = run(folder.path(), &["crd", "prove", "crd.yaml", "conv.yaml", "--nonsense"], "");
    assert_eq!(unknown.code, Some(2), "flags that are wrong find nothing out");
}

#[test]
fn objects_are_converted_to_json_for_programs() {
    let folder = folder();
    let input =
        "apiVersion: shop.example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 1}\n---\nkind: ConfigMap\n";
    let words = ["crd", "convert", "--crd", "crd.yaml", "--conversion", "conv.yaml", "--to", "v2", "-o", "json"];
    let done = run(folder.path(), &words, input);
    let list: Value = serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {}", done.err));
    assert_eq!((done.code, &list["kind"]), (Some(0), &Value::from("List")));
    assert_eq!(list["items"][0]["spec"]["count"], 1);
    assert_eq!(list["items"][1]["kind"], "ConfigMap");
}

/// Ten versions, fifty rules between each and the next: the size that is promised to take seconds.
#[test]
fn ten_versions_with_fifty_rules_each_are_checked() {
    const VERSIONS: usize = 10;
    const RULES: usize = 50;
    let field = |version: usize, rule: usize| match rule % 5 {
        0 => (format!("f{rule}x{version}"), serde_json::json!({"type": "string"})),
        1 => (format!("f{rule}x{version}"), serde_json::json!({"type": "integer", "minimum": 0, "maximum": 100})),
        2 => {
            let values: Vec<String> = ["a", "b"].iter().map(|value| format!("{value}{version}")).collect();
            (format!("f{rule}"), serde_json::json!({"type": "string", "enum": values}))
        }
        3 => (format!("f{rule}x{version}"), serde_json::json!({"type": "boolean"})),
        _ => (
            format!("f{rule}x{version}"),
            serde_json::json!({"type": "object", "properties": {"p": {"type": "string"}}}),
        ),
    };
    let versions = (0..VERSIONS).map(|version| {
        let properties: serde_json::Map<String, Value> = (0..RULES).map(|rule| field(version, rule)).collect();
        let spec = serde_json::json!({"type": "object", "properties": properties});
        serde_json::json!({
            "name": format!("v{}", version + 1), "served": true, "storage": version == 0,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    });
    let steps = (0..VERSIONS - 1).map(|version| {
        let rules = (0..RULES).map(|rule| {
            let [from, to] = [version, version + 1].map(|version| format!(".spec.{}", field(version, rule).0));
            match rule % 5 {
                2 => {
                    let map: serde_json::Map<String, Value> = ["a", "b"]
                        .iter()
                        .map(|value| (format!("{value}{version}"), Value::from(format!("{value}{}", version + 1))))
                        .collect();
                    serde_json::json!({"values": {"path": from, "map": map}})
                }
                3 => serde_json::json!({"compute": {
                    "from": {"x": from}, "to": {"y": to}, "forward": {"y": "!x"}, "backward": {"x": "!y"},
                }}),
                _ => serde_json::json!({"move": {"from": from, "to": to}}),
            }
        });
        let rules: Vec<Value> = rules.collect();
        serde_json::json!({"from": format!("v{}", version + 1), "to": format!("v{}", version + 2), "rules": rules})
    });
    let name = "widgets.shop.example.com";
    let definition = serde_json::json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {
            "group": "shop.example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": versions.collect::<Vec<_>>(),
        },
    });
    let conversion = serde_json::json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion", "metadata": {"name": name},
        "spec": {"steps": steps.collect::<Vec<_>>()},
    });
    let folder = tempfile::tempdir().expect("a folder");
    for (file, object) in [("crd.json", &definition), ("conv.json", &conversion)] {
        std::fs::write(folder.path().join(file), object.to_string()).expect("a file can be written");
    }
    let done = run(folder.path(), &["crd", "prove", "crd.json", "conv.json", "-o", "json"], "");
    let report: Value = serde_json::from_str(&done.out).expect("is JSON");
    assert_eq!(done.code, Some(0), "{}", done.out);
    assert_eq!(report[0]["steps"].as_array().map(Vec::len), Some(VERSIONS - 1));
}
