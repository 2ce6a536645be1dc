//! [`SourceFile`]: a file with definitions, Conversions and whatever else, alone or out of a folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_check::to_v1;
use revisor_object::{Object, Value};

use super::documents::Document;

/// What files of a folder are called that are read.
pub(super) const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// How deep folders may nest, how many files there may be, and how many bytes they may have together.
const MAX_DEPTH: usize = 16;
pub(super) const MAX_FILES: usize = 10_000;
pub(super) const MAX_BYTES: usize = 256 << 20;

/// A file and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// An object of a file.
pub(crate) struct Located {
    pub(crate) object: Object,
    /// File, document and line.
    pub(crate) place: String,
    /// The file.
    pub(crate) file: PathBuf,
    /// The line on which its document begins.
    pub(crate) line: usize,
    /// Where it was read.
    pub(crate) origin: Origin,
}

/// Where an object was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The document; empty if there is none.
    pub(crate) text: Arc<str>,
    /// The line of the file on which that begins.
    pub(crate) first_line: usize,
    /// The JSON pointer that leads to the object in it: it may be an item of a list.
    pub(crate) pointer: String,
}

impl SourceFile {
    /// Reads files, and those of folders and of the folders in them whose names end like YAML or JSON. What begins with
    /// a dot is left out: that is where mounted volumes keep the same files a second time.
    pub(crate) fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<SourceFile>> {
        let mut found = Vec::new();
        for path in paths {
            match fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?.is_dir() {
                true => find(path, 0, &mut found)?,
                false => found.push(path.clone()),
            }
        }
        // However it is named twice, it is read once.
        found.sort();
        found.dedup();
        let (mut files, mut bytes) = (Vec::with_capacity(found.len()), 0);
        for path in found {
            let file = SourceFile::read(&path)?;
            bytes += file.text.len();
            if bytes > MAX_BYTES {
                bail!("{}: the files have more than {MAX_BYTES} bytes together", path.display());
            }
            files.push(file);
        }
        Ok(files)
    }

    /// Reads one file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<SourceFile> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = String::from_utf8(bytes).with_context(|| format!("{} is no text", path.display()))?;
        Ok(SourceFile { path: path.to_owned(), text })
    }

    /// The objects of the file, and those of lists in it.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Located>> {
        let mut objects = Vec::new();
        for document in Document::all(&self.text) {
            let place = format!("{}, {}", self.path.display(), document.place());
            let value = document.value().with_context(|| place.clone())?;
            let found = objects.len();
            take_objects(value, &place, "", &mut objects);
            let text: Arc<str> = document.text.into();
            for located in &mut objects[found..] {
                (located.file, located.line) = (self.path.clone(), document.first_line());
                (located.origin.text, located.origin.first_line) = (Arc::clone(&text), document.line());
            }
        }
        Ok(objects)
    }
}

impl Located {
    /// An object of no file, by the name of its place.
    pub(crate) fn at(place: &str) -> Located {
        let (object, origin) = (Object::default(), Origin::default());
        Located { object, place: place.to_owned(), file: PathBuf::new(), line: 0, origin }
    }

    /// The same in the version of definitions that there is today.
    pub(crate) fn in_v1(self) -> Located {
        Located { object: to_v1(self.object), ..self }
    }

    /// Whether it is a definition, in whichever version.
    pub(crate) fn is_definition(&self) -> bool {
        is_definition(&self.object)
    }

    /// Whether it is a Conversion.
    pub(crate) fn is_conversion(&self) -> bool {
        let version = self.object.str("apiVersion").unwrap_or_default();
        self.object.str("kind") == Some("Conversion") && version.starts_with("versioning.revisor.dev/")
    }

    pub(crate) fn name(&self) -> &str {
        self.object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Whether an object is a definition, in whichever version.
pub(crate) fn is_definition(object: &Object) -> bool {
    object.str("kind") == Some("CustomResourceDefinition")
}

fn take_objects(value: Value, place: &str, pointer: &str, objects: &mut Vec<Located>) {
    let Value::Object(mut object) = value else { return };
    if object.str("kind").is_some_and(|kind| kind.ends_with("List"))
        && let Some(items) = object.array_mut("items")
    {
        let numbered = std::mem::take(items).into_iter().enumerate();
        return numbered.for_each(|(number, item)| {
            take_objects(item, &format!("{place}, items[{number}]"), &format!("{pointer}/items/{number}"), objects);
        });
    }
    objects.push(Located {
        object,
        origin: Origin { pointer: pointer.to_owned(), ..Origin::default() },
        ..Located::at(place)
    });
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!("{}: folders nest more than {MAX_DEPTH} deep", folder.display());
    }
    let cannot = || format!("cannot look through {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        // What a link leads to may be gone by now; then it is not there.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if metadata.is_dir() {
            find(&path, depth + 1, found)?;
        } else if metadata.is_file() && EXTENSIONS.contains(&extension) {
            found.push(path);
        }
        if found.len() > MAX_FILES {
            bail!("{}: there are more than {MAX_FILES} files", folder.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_lists_are_looked_through() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        };
        write("b/two.yml", "kind: List\nitems:\n- kind: A\n- {kind: ListOfNothing}\n");
        write("a.yaml", "# nothing\n---\nkind: CustomResourceDefinition\n---\njust text\n");
        write("notes.txt", "kind: Z\n");
        write("..data/a.yaml", "kind: Z\n");
        let read = SourceFile::read_all(&[folder.path().join("a.yaml"), folder.path().to_owned()]).expect("is read");
        let objects: Vec<Located> = read.iter().flat_map(|file| file.objects().expect("is YAML")).collect();
        let kinds: Vec<&str> = objects.iter().filter_map(|found| found.object.str("kind")).collect();
        assert_eq!(kinds, ["CustomResourceDefinition", "A", "ListOfNothing"]);
        assert!(objects[1].place.ends_with("two.yml, document 1 (from line 1 on), items[0]"), "{}", objects[1].place);
        assert!(objects[0].is_definition() && !objects[1].is_definition());
        write("c.json", "{");
        let read = SourceFile::read_all(&[folder.path().to_owned()]).expect("is read");
        let error = read.iter().find_map(|file| file.objects().err()).expect("is no YAML");
        assert!(format!("{error:#}").contains("c.json, document 1"), "{error:#}");
        assert!(SourceFile::read_all(&["nowhere".into()]).is_err());
    }
}
