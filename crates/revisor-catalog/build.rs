//! Gathers what people are told about the fields of built-in kinds from the sources of `k8s-openapi`, the published
//! bindings of the API, into one compressed file, and what the columns of tables tell of that into another. Those sources
//! are only read, so nothing is compiled for it; they are at hand because the tests of the program use them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

/// The release whose texts are gathered.
const RELEASE: &str = "v1_36";

/// Types that only former releases have, and where their texts are.
const FORMER: &str = "v1_34/api/storagemigration/v1alpha1";

/// The columns of tables. A description that begins with `=` names a type and a field that says it.
const COLUMNS: &str = "tables/columns.csv";

/// By type and field.
type Texts = BTreeMap<(String, String), String>;

/// What a source begins with that holds a type.
const HEAD: &str = "// Generated from definition ";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    println!("cargo::rerun-if-changed={COLUMNS}");
    let texts = find_texts().unwrap_or_else(|error| {
        // A server that cannot explain its fields is worth more than none. What is never there is looked for again.
        println!("cargo::warning=kubectl explain will show no descriptions: {error}");
        println!("cargo::rerun-if-changed=descriptions-were-not-found");
        Texts::new()
    });
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo names a folder for what is made")?);
    fs::write(folder.join("column_descriptions.tsv"), column_descriptions(&texts)?)?;
    let mut packed = GzEncoder::new(File::create(folder.join("descriptions.gz"))?, Compression::best());
    for ((of, field), text) in texts {
        writeln!(packed, "{of}\t{field}\t{}", Value::String(text))?;
    }
    packed.finish()?;
    Ok(())
}

/// What columns tell of fields, by the name that they have for them. Every object has metadata.
fn column_descriptions(texts: &Texts) -> Result<String, Box<dyn Error>> {
    const COMMON: [&str; 2] = ["name", "creationTimestamp"];
    let table = fs::read_to_string(COLUMNS)?;
    let named = table.lines().filter_map(|line| line.splitn(7, ',').nth(6)?.strip_prefix('=')).map(str::to_owned);
    let common = COMMON.map(|field| format!("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta#{field}"));
    let named: std::collections::BTreeSet<String> = named.chain(common).collect();
    let mut lines = String::new();
    for name in named {
        let (of, field) = name.split_once('#').ok_or_else(|| format!("{COLUMNS}: {name} names no field"))?;
        let text = texts.get(&(of.to_owned(), field.to_owned()));
        if text.is_none() && !texts.is_empty() {
            return Err(format!("{COLUMNS}: nobody says what {name} is").into());
        }
        lines.push_str(&format!("{name}\t{}\n", Value::String(text.cloned().unwrap_or_default())));
    }
    Ok(lines)
}

/// The texts of all built-in types.
fn find_texts() -> Result<Texts, Box<dyn Error>> {
    let manifest = manifest_of("k8s-openapi")?;
    println!("cargo::rerun-if-changed={}", manifest.display());
    let mut texts = Texts::new();
    let sources = manifest.with_file_name("src");
    gather(&sources.join(FORMER), &mut texts)?;
    gather(&sources.join(RELEASE), &mut texts)?;
    if texts.is_empty() { Err(format!("none beside {}", manifest.display()).into()) } else { Ok(texts) }
}

/// The manifest of a package that the workspace uses. Only what this machine can use is asked for, so that nothing else
/// has to be there.
fn manifest_of(package: &str) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").ok_or("cargo names itself")?;
    let platform = format!("--filter-platform={}", std::env::var("HOST")?);
    let output = Command::new(cargo).args(["metadata", "--format-version=1", "--locked", &platform]).output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).replace('\n', " ")).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo lists packages")?;
    let found = packages.iter().find(|known| known["name"] == package).ok_or("the package is locked")?;
    Ok(PathBuf::from(found["manifest_path"].as_str().ok_or("a package has a manifest")?))
}

/// The texts of all sources below a folder.
fn gather(folder: &Path, texts: &mut Texts) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, texts)?;
        } else {
            read(&fs::read_to_string(&path)?, texts);
        }
    }
    Ok(())
}

/// The texts of one source. Its schema is laid out as rustfmt does: the type's own words stand at one depth, the names
/// of its fields at the next, and theirs deeper.
fn read(source: &str, texts: &mut Texts) {
    let Some(of) = source.lines().next().and_then(|line| line.strip_prefix(HEAD)) else { return };
    let schema = source.lines().skip_while(|line| !line.contains("fn json_schema(")).skip(1);
    let mut field = String::new();
    for line in schema.take_while(|line| !line.starts_with('}')) {
        let words = line.trim_start();
        let depth = line.len() - words.len();
        if depth == 16
            && let Some((name, _)) = words.strip_prefix('"').and_then(|rest| rest.split_once("\": "))
        {
            name.clone_into(&mut field);
        }
        let text = words
            .strip_prefix("\"description\": ")
            .filter(|_| depth == 12 || depth == 20)
            .or_else(|| words.split_once("insert(\"description\".into(), ").map(|(_, rest)| rest));
        if let Some(text) = text.and_then(literal) {
            let field = if depth == 12 { String::new() } else { field.clone() };
            texts.entry((of.to_owned(), field)).or_insert(text);
        }
    }
}

/// The value of the string literal that a text begins with.
fn literal(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut letters = text.strip_prefix('"')?.chars();
    loop {
        match letters.next()? {
            '"' => return Some(value),
            '\\' => match letters.next()? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                'u' => {
                    let digits: String = letters.by_ref().skip(1).take_while(|letter| *letter != '}').collect();
                    value.push(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?);
                }
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}
