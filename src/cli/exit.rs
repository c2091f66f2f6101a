//! Exit codes.

/// Everything that was asked for was done.
pub const OK: i32 = 0;
/// A run failed (wrong answer, engine error, mode not reached), or this machine cannot do what was asked.
pub const FAILED: i32 = 1;
/// The command line, or a file that it names, is wrong.
pub const USAGE: i32 = 2;

/// Ended by a signal: 130 for SIGINT (Ctrl-C), 143 for SIGTERM.
pub fn interrupted(signal: i32) -> i32 {
    128 + signal
}

/// The codes, as help shows them.
pub const HELP: &str = "\
Exit codes:
  0    every run is well
  1    a run failed (wrong answer, engine error, mode not reached), or this machine cannot do it
  2    the command line, or a file that it names, is wrong
  130  ended by Ctrl-C (SIGINT); 143 by SIGTERM";
