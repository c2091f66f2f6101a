//! A check as data, how it is shown, and the verdict over all of them.

use std::fmt::Write;

/// Width of the longest name, so that what was found stands in one column.
const NAME_WIDTH: usize = 19;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, but changes results or leaves something out.
    Warn,
    /// Not there.
    Missing,
}

impl State {
    fn mark(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Missing => "missing",
        }
    }

    /// The terminal's code of its colour.
    fn colour(self) -> &'static str {
        match self {
            State::Ok => "32",
            State::Warn => "33",
            State::Missing => "31",
        }
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What it costs the user; empty where all is well.
    pub cost: String,
    /// What mends it: a command, or a sentence where none does; empty where all is well.
    pub remedy: String,
    /// Whether the main job cannot run while this is missing.
    pub needed: bool,
}

impl Check {
    /// All is well.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, state: State::Ok, found: found.into(), cost: String::new(), remedy: String::new(), needed: false }
    }

    /// It works, at a cost.
    pub fn warn(
        name: &'static str,
        found: impl Into<String>,
        cost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check { state: State::Warn, cost: cost.into(), remedy: remedy.into(), ..Check::ok(name, found) }
    }

    /// It is not there, and the main job runs without it.
    pub fn missing(
        name: &'static str,
        found: impl Into<String>,
        cost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check { state: State::Missing, ..Check::warn(name, found, cost, remedy) }
    }

    /// It is not there, and the main job cannot run without it.
    pub fn needed(
        name: &'static str,
        found: impl Into<String>,
        cost: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Check {
        Check { needed: true, ..Check::missing(name, found, cost, remedy) }
    }
}

/// One line a check; under what is not well, what it costs and what mends it.
pub fn render(checks: &[Check], colour: bool) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = format!("{:<7}", check.state.mark());
        let mark = if colour { format!("\x1b[{}m{mark}\x1b[0m", check.state.colour()) } else { mark };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark} {:<NAME_WIDTH$} {}", check.name, printable(&check.found));
        for (label, lines) in [("costs", &check.cost), ("mend", &check.remedy)] {
            for (number, line) in lines.lines().enumerate() {
                let label = if number == 0 { format!("{label}:") } else { String::new() };
                let _ = writeln!(text, "{:12}{label:<6} {}", "", printable(line));
            }
        }
    }
    text
}

/// A path may hold control characters, which must not reach the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Whether the main job can run, and the sentence that says so and what will be missing.
pub fn verdict(checks: &[Check]) -> (String, bool) {
    let named = |wanted: fn(&Check) -> bool| -> Vec<&str> {
        checks.iter().filter(|check| wanted(check)).map(|check| check.name).collect()
    };
    let blocking = named(|check| check.needed && check.state == State::Missing);
    if !blocking.is_empty() {
        let sentence = format!(
            "A query over io_uring with direct I/O cannot run here: {}. See the lines marked missing.",
            blocking.join(", ")
        );
        return (sentence, false);
    }
    let missing = named(|check| check.state == State::Missing);
    let warned = named(|check| check.state == State::Warn);
    let mut sentence = "A query over io_uring with direct I/O can run here".to_owned();
    if missing.is_empty() {
        sentence.push_str(", with every counter.");
    } else {
        let _ = write!(sentence, ", but without: {} (costs and remedies above).", missing.join(", "));
    }
    if !warned.is_empty() {
        let _ = write!(sentence, " Mind when comparing: {}.", warned.join(", "));
    }
    (sentence, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed() -> Vec<Check> {
        vec![
            Check::ok("kernel", "Linux 6.18.0 on x86_64"),
            Check::warn(
                "nomerges",
                "2 on nvme0n1",
                "the block layer merges nothing",
                "echo 0 | sudo tee /sys/block/nvme0n1/queue/nomerges",
            ),
            Check::missing("PMU", "no PMU", "cycles stay null", "first line\nsecond line"),
        ]
    }

    #[test]
    fn a_report_is_one_line_a_check_with_cost_and_remedy_below() {
        insta::assert_snapshot!(render(&fixed(), false), @r"
        ok      kernel              Linux 6.18.0 on x86_64
        warn    nomerges            2 on nvme0n1
                    costs: the block layer merges nothing
                    mend:  echo 0 | sudo tee /sys/block/nvme0n1/queue/nomerges
        missing PMU                 no PMU
                    costs: cycles stay null
                    mend:  first line
                           second line
        ");
    }

    #[test]
    fn colour_touches_the_marks_alone() {
        let plain = render(&fixed(), false);
        let coloured = render(&fixed(), true);
        assert!(coloured.starts_with("\x1b[32mok     \x1b[0m kernel"));
        let stripped = ["\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"].iter().fold(coloured, |t, c| t.replace(c, ""));
        assert_eq!(stripped, plain);
    }

    #[test]
    fn control_characters_of_a_path_do_not_reach_the_terminal() {
        let text = render(&[Check::ok("database", "a\x1b[2Jb")], false);
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn the_verdict_names_what_will_be_missing() {
        let (sentence, can_run) = verdict(&fixed());
        assert!(can_run);
        insta::assert_snapshot!(sentence, @"A query over io_uring with direct I/O can run here, but without: PMU (costs and remedies above). Mind when comparing: nomerges.");
        let all_well = verdict(&fixed()[..1]);
        insta::assert_snapshot!(all_well.0, @"A query over io_uring with direct I/O can run here, with every counter.");
    }

    #[test]
    fn one_needed_thing_that_is_missing_stops_the_main_job() {
        let mut checks = fixed();
        checks.push(Check::needed("io_uring", "EPERM", "no ring", "sysctl kernel.io_uring_disabled=0"));
        let (sentence, can_run) = verdict(&checks);
        assert!(!can_run);
        insta::assert_snapshot!(sentence, @"A query over io_uring with direct I/O cannot run here: io_uring. See the lines marked missing.");
    }
}
