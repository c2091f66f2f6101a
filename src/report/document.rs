//! The report of a campaign, as Markdown: the same bytes from the same files on any machine.

use super::hosts::Host;
use super::sections::{cache, environment, frame, published, readahead, results, sqpoll, troubles};
use super::study::Study;

/// The whole report.
pub fn render(study: &Study) -> String {
    let hosts = Host::all(study);
    let seed = study.campaign.plan.seed;
    let mut text = frame::heading(study, &hosts);
    text.push_str(&environment::section(&hosts));
    text.push_str(&frame::protocol(study));
    text.push_str(&frame::data(study));
    if hosts.is_empty() {
        text.push_str("## Results\n\nNo run has been recorded.\n\n");
    }
    for host in &hosts {
        text.push_str(&format!("## Results: {}\n\n", host.label));
        if hosts.len() > 1 {
            text.push_str("Runs of other machines and settings have sections of their own; no number mixes them.\n\n");
        }
        text.push_str(&results::tables(host, seed));
        text.push_str(&readahead::section(study, host, seed));
        text.push_str(&published::section(study, host));
        text.push_str(&results::verdicts(study, host, seed));
        text.push_str(&cache::section(host, seed));
        text.push_str(&results::drift(host, seed));
    }
    text.push_str(&frame::figures(study));
    text.push_str(&troubles::section(study, &hosts));
    for host in &hosts {
        text.push_str(&sqpoll::guide(host, seed));
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
