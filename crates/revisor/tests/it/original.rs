//! What the original answers: the script of `revisor-differ`, and what a genuine server said to it.
//!
//! To add a case, add a group to the script and record the answers with `cargo xtask differ --script … --record …`.

use revisor_differ::client::{Endpoint, Party};
use revisor_differ::deliberate;
use revisor_differ::record::{ANSWERS, Recorded};
use revisor_differ::run::differences;
use revisor_differ::script::{self, SCRIPT};

use crate::harness::{ADMIN_TOKEN, Server};

#[tokio::test]
async fn the_script_is_answered_as_by_the_original() {
    let server = Server::start(&["--controllers=none", "--service-cluster-ip-range=10.0.0.0/16"]).await;
    let endpoint = Endpoint::new(&format!("https://{}", server.kubeconfig.address), ADMIN_TOKEN).expect("is here");
    let mut party = Party::new(endpoint, "d00000").expect("a client");
    let recorded = Recorded::parse(ANSWERS);
    let mut wrong = Vec::new();
    for (group, number) in script::parse(SCRIPT).expect("a script").iter().zip(1..) {
        let ours = party.play(group, number).await.expect("answers");
        let Some(theirs) = recorded.answers(group) else { panic!("nothing is recorded for {:?}", group.title) };
        assert_eq!(theirs.len(), group.steps.len(), "{:?} is to be recorded anew", group.title);
        // What was too large to be kept is taken for what it is.
        let theirs: Vec<_> = theirs.iter().zip(&ours).map(|(theirs, ours)| theirs.as_ref().unwrap_or(ours)).collect();
        for found in differences(group, &ours, &theirs.into_iter().cloned().collect::<Vec<_>>()) {
            if deliberate::find(&found.finding.cause).is_none() {
                wrong.push(format!("{}\n{}\n{:#?}", group.title, group.steps[found.step], found.finding));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
