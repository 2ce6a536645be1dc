//! Follows the walk of docs/versions.md, word by word: writes the files that it shows, types what stands behind `$`, and compares what comes
//! with what stands below.

use super::{Kubectl, finish};

const PAGE: &str = include_str!("../../../../../docs/versions.md");

/// Follows the section with this title, in a folder of its own.
pub(super) async fn follow(kubectl: &Kubectl, title: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let section = PAGE.split_once(title).expect("the page has this section").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    // Texts and blocks take turns.
    let mut parts = section.split("\n```");
    let mut commands = 0;
    while let Some(text) = parts.next() {
        let Some(block) = parts.next() else { break };
        let (kind, block) = block.split_once('\n').expect("a block has a kind");
        match kind {
            "yaml" => {
                let name = text.rsplit('`').nth(1).expect("says where to put it");
                std::fs::write(folder.path().join(name), format!("{block}\n")).expect("a file can be written");
            }
            _ => {
                for step in block.strip_prefix("$ ").expect("begins with a command").split("\n$ ") {
                    let (command, want) = step.split_once('\n').unwrap_or((step, ""));
                    let (_, said) = finish(kubectl.shell(folder.path(), command), "").await;
                    assert_eq!(ageless(&said), ageless(want), "{command}");
                    commands += 1;
                }
            }
        }
    }
    assert!(commands > 0, "there is something to follow");
}

/// What a command says, without ages: those are not the page's to know.
fn ageless(text: &str) -> Vec<String> {
    let is_age = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<u32>().is_ok());
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((rest, last)) if is_age(last) => rest.trim_end().to_owned(),
        _ => line.trim_end().to_owned(),
    };
    text.trim_end().lines().map(line).collect()
}
