//! Files of a revision, as git has them. What a revision or a path means is for git to say, so git is asked.

use std::io::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::super::SourceFile;
use super::super::files::{EXTENSIONS, MAX_BYTES, MAX_FILES};

/// The file at `REV:path`, or the files of the folder there whose names end like YAML or JSON.
pub(super) fn files(revision: &str, path: &str) -> anyhow::Result<Vec<SourceFile>> {
    let object = format!("{revision}:{path}");
    if object.starts_with('-') {
        bail!("{object:?} is no revision");
    }
    let kind = git(&["cat-file", "-t", &object]).with_context(|| format!("cannot read {object}"))?;
    let named = match String::from_utf8_lossy(&kind).trim() {
        "blob" => vec![(object.clone(), object.clone())],
        "tree" => of_tree(&object)?,
        other => bail!("{object} is a {other}, where a file or a folder is wanted"),
    };
    let texts = read(&named.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>())?;
    named
        .into_iter()
        .zip(texts)
        .map(|((_, name), bytes)| {
            let text = String::from_utf8(bytes).with_context(|| format!("{name} is no text"))?;
            // The revision says where it was, the path where it is.
            let file = name.split_once(':').map_or(name.as_str(), |(_, file)| file);
            Ok(SourceFile { path: file.into(), text })
        })
        .collect()
}

/// The files of a folder, each as its number and `REV:path`.
fn of_tree(tree: &str) -> anyhow::Result<Vec<(String, String)>> {
    let listed = git(&["ls-tree", "-r", "-z", "--full-tree", tree])?;
    let mut found = Vec::new();
    for entry in String::from_utf8_lossy(&listed).split('\0').filter(|entry| !entry.is_empty()) {
        let Some((head, name)) = entry.split_once('\t') else { continue };
        let mut words = head.split(' ');
        let (Some(_mode), Some("blob"), Some(id)) = (words.next(), words.next(), words.next()) else { continue };
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_hidden = name.split('/').any(|part| part.starts_with('.'));
        if EXTENSIONS.contains(&extension) && !is_hidden {
            let joint = if tree.ends_with([':', '/']) { "" } else { "/" };
            found.push((id.to_owned(), format!("{tree}{joint}{name}")));
        }
    }
    if found.len() > MAX_FILES {
        bail!("{tree} has more than {MAX_FILES} files");
    }
    Ok(found)
}

/// What is in these files, all asked for at once.
fn read(ids: &[&str]) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut child = command(&["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("cannot run git")?;
    let mut input = child.stdin.take().context("git takes no input")?;
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    // On a thread: git answers before it has read everything, and waits until the answer is read.
    let asking = std::thread::spawn(move || input.write_all(asked.as_bytes()));
    let done = child.wait_with_output().context("cannot run git")?;
    if !matches!(asking.join(), Ok(Ok(()))) || !done.status.success() {
        bail!("git cat-file ended with {}", done.status);
    }
    let mut rest = done.stdout.as_slice();
    if rest.len() > MAX_BYTES {
        bail!("the files have more than {MAX_BYTES} bytes together");
    }
    let mut texts = Vec::with_capacity(ids.len());
    for id in ids {
        let broken = || format!("git does not say what is in {id}");
        let end = rest.iter().position(|byte| *byte == b'\n').with_context(broken)?;
        let size = String::from_utf8_lossy(&rest[..end]).rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
        let (begin, size) = (end + 1, size.with_context(broken)?);
        texts.push(rest.get(begin..begin + size).with_context(broken)?.to_vec());
        rest = rest.get(begin + size + 1..).unwrap_or_default();
    }
    Ok(texts)
}

fn git(words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let done = command(words).stdin(Stdio::null()).output().context("cannot run git")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        bail!("git says: {}", if said.is_empty() { done.status.to_string() } else { said });
    }
    Ok(done.stdout)
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(words).env("LC_ALL", "C");
    command
}
