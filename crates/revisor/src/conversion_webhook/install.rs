//! `revisor conversion-webhook --install`: definitions that name the webhook and whom to trust.
//!
//! Of a file only what has to be different is written anew, so that comments and the order of everything else stay. Where
//! that cannot be done, the definition is written as a whole.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use revisor_auth::LiveCertificates;
use revisor_object::{KeyOrder, Object, Value, parse_yaml};

use super::flags::ConversionWebhookFlags;
use super::handler::PATH;
use crate::crd::{Document, SourceFile, is_definition, to_yaml};

impl ConversionWebhookFlags {
    /// The names by which the cluster calls the webhook, beside those that every certificate has.
    pub(super) fn hosts(&self) -> Vec<String> {
        let of_url = self.url.as_ref().and_then(|url| url.parse::<http::Uri>().ok()?.host().map(str::to_owned));
        let of_url = of_url.map(|host| host.trim_matches(['[', ']']).to_owned());
        of_url.into_iter().chain(self.service.as_ref().map(|service| service.host())).collect()
    }

    /// Where the cluster finds the webhook, as a definition says it.
    fn target(&self) -> anyhow::Result<(&'static str, Value)> {
        if let Some(service) = &self.service {
            let members = [
                ("namespace", Value::from(service.namespace.as_str())),
                ("name", Value::from(service.name.as_str())),
                ("path", Value::from(PATH)),
                ("port", Value::Int(i64::from(service.port))),
            ];
            return Ok(("service", Value::Object(members.into_iter().collect())));
        }
        if let Some(url) = &self.url {
            return Ok(("url", Value::from(url.as_str())));
        }
        if self.bind_address.is_unspecified() || self.secure_port == 0 {
            bail!(
                "nobody can tell where the cluster finds {}:{}: say so with --url or --service",
                self.bind_address,
                self.secure_port
            );
        }
        let address = SocketAddr::new(self.bind_address, self.secure_port);
        Ok(("url", Value::from(format!("https://{address}{PATH}"))))
    }

    /// `spec.conversion` of every definition.
    fn conversion(&self, certificates: &LiveCertificates) -> anyhow::Result<Object> {
        let trusted = match &self.tls_cert_file {
            Some(file) => fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?,
            None => certificates.own().authority_pem().to_owned(),
        };
        let bundle = ("caBundle", Value::from(STANDARD.encode(trusted)));
        let config: Object = [bundle, self.target()?].into_iter().collect();
        let versions = Value::from(vec![Value::from("v1")]);
        let webhook = [("clientConfig", Value::Object(config)), ("conversionReviewVersions", versions)];
        let webhook: Object = webhook.into_iter().collect();
        Ok([("strategy", Value::from("Webhook")), ("webhook", Value::Object(webhook))].into_iter().collect())
    }
}

/// Prints the definitions of the files as they have to be, or writes them into the files.
pub(super) fn install(
    flags: &ConversionWebhookFlags,
    files: &[SourceFile],
    certificates: &LiveCertificates,
) -> anyhow::Result<()> {
    let conversion = flags.conversion(certificates)?;
    let mut printed = Vec::new();
    for file in files {
        let mut text = file.text.clone();
        // From the last to the first: the others stay where they are.
        for document in Document::all(&file.text).into_iter().rev() {
            let Some(installed) = installed(&document, &conversion)? else { continue };
            let start = document.text.as_ptr() as usize - file.text.as_ptr() as usize;
            text.replace_range(start..start + document.text.len(), &installed);
            printed.push(installed);
        }
        if flags.apply && text != file.text {
            replace(&file.path, &text).with_context(|| format!("cannot write {}", file.path.display()))?;
            crate::print(&format!("{} written\n", file.path.display()))?;
        }
    }
    if !flags.apply {
        printed.reverse();
        crate::print(&printed.join("---\n"))?;
    }
    Ok(())
}

/// The text of a document whose definitions name the webhook; nothing if there is none in it.
fn installed(document: &Document<'_>, conversion: &Object) -> anyhow::Result<Option<String>> {
    let mut value = document.value().with_context(|| document.place())?;
    if !install_into(&mut value, conversion) {
        return Ok(None);
    }
    let is_same = |text: &str| parse_yaml(text.as_bytes()).is_ok_and(|parsed| parsed.value == value);
    if let Some(text) = spliced(document.text, conversion).filter(|text| is_same(text)) {
        return Ok(Some(text));
    }
    Ok(match &value {
        Value::Object(object) if !document.is_json() => {
            Some(format!("{}{}", document.head(), to_yaml(object, &KeyOrder::of(document.text))))
        }
        value => Some(format!("{}\n", value.to_json())),
    })
}

/// Puts the conversion into a definition, or into those of a list. Answers whether there was one.
fn install_into(value: &mut Value, conversion: &Object) -> bool {
    let Value::Object(object) = value else { return false };
    if is_definition(object) {
        object.object_mut("spec").insert("conversion", conversion.clone());
        return true;
    }
    let is_list = object.str("kind").is_some_and(|kind| kind.ends_with("List"));
    let Some(items) = object.array_mut("items").filter(|_| is_list) else { return false };
    // All of them, not only the first.
    items.iter_mut().filter_map(|item| install_into(item, conversion).then_some(())).count() > 0
}

/// The text of a definition in block style with another `spec.conversion`.
fn spliced(text: &str, conversion: &Object) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let spec = lines.iter().position(|line| line.trim_end() == "spec:")?;
    let first = spec + 1 + lines[spec + 1..].iter().position(|line| is_said(line))?;
    let depth = indent(lines[first]);
    if depth == 0 {
        return None;
    }
    let members = lines[first..].iter().position(|line| is_said(line) && indent(line) < depth);
    let end = members.map_or(lines.len(), |length| first + length);
    let is_conversion = |line: &&str| indent(line) == depth && line[depth..].starts_with("conversion:");
    // Where the old one stands, or in front of the first member.
    let (from, to) = match lines[first..end].iter().position(is_conversion) {
        None => (first, first),
        Some(at) => {
            let from = first + at;
            let rest = lines[from + 1..end].iter().position(|line| is_said(line) && indent(line) <= depth);
            (from, rest.map_or(end, |length| from + 1 + length))
        }
    };
    let block: Object = [("conversion", Value::Object(conversion.clone()))].into_iter().collect();
    let pad = " ".repeat(depth);
    let block = to_yaml(&block, &KeyOrder::default());
    let block: String = block.split_inclusive('\n').map(|line| format!("{pad}{line}")).collect();
    let mut before = lines[..from].concat();
    if !before.ends_with('\n') {
        before.push('\n');
    }
    Some(format!("{before}{block}{}", lines[to..].concat()))
}

/// Puts a text in the place of a file, in one piece and with the rights that the file had.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut file = fs::File::create_new(&beside)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.sync_all()?;
        fs::rename(&beside, &path)
    })();
    if written.is_err() {
        // Whether or not it can be taken away again, the other error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversion() -> Object {
        [("strategy", Value::from("Webhook"))].into_iter().collect()
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let document = Document::all(text)[0];
        let made = installed(&document, &conversion()).expect("is YAML");
        assert_eq!(made.as_deref().unwrap_or_default(), want);
    }

    #[test]
    fn what_stands_around_a_conversion_stays_as_it_is() {
        let head = "kind: CustomResourceDefinition # ours\nspec:\n  # first\n";
        check(
            &format!("{head}  group: a\n  names:\n    kind: A\n"),
            &format!("{head}  conversion:\n    strategy: Webhook\n  group: a\n  names:\n    kind: A\n"),
        );
        check(
            &format!(
                "{head}  group: a\n  conversion:\n    strategy: None\n    # gone\n\n  # stays?\n  names: {{}}\nstatus: {{}}\n"
            ),
            &format!("{head}  group: a\n  conversion:\n    strategy: Webhook\n  names: {{}}\nstatus: {{}}\n"),
        );
        check(
            &format!("{head}  conversion: {{strategy: None}}\n  group: a"),
            &format!("{head}  conversion:\n    strategy: Webhook\n  group: a"),
        );
    }

    #[test]
    fn what_is_written_in_another_style_is_written_as_a_whole() {
        let kind = "kind: CustomResourceDefinition\n";
        check(
            &format!("# head\n{kind}spec: {{group: a}}\n"),
            &format!("# head\n{kind}spec:\n  group: a\n  conversion:\n    strategy: Webhook\n"),
        );
        check(
            r#"{"kind":"List","items":[{"kind":"CustomResourceDefinition"},{"kind":"B"}]}"#,
            "{\"items\":[{\"kind\":\"CustomResourceDefinition\",\"spec\":{\"conversion\":{\"strategy\":\"Webhook\"}}},{\"kind\":\"B\"}],\"kind\":\"List\"}\n",
        );
        check("kind: Conversion\nspec:\n  steps: []\n", "");
    }
}
