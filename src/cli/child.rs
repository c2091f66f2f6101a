//! `ioscope child`: one run, in the process that the runner started for it.

use std::io::{Read, Write};

use anyhow::{Context, bail};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use super::exit;
use crate::experiment::inside;
use crate::experiment::spec::RunSpec;

/// Reads the specification from stdin, carries out the run and writes its record to stdout.
pub fn run() -> anyhow::Result<i32> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).context("cannot read the run's specification")?;
    let spec: RunSpec = serde_json::from_slice(&input)
        .context("standard input is not the specification of a run; see `ioscope query`")?;
    if let Some(runner) = spec.runner_pid {
        // Without the runner nobody reads the record, and a run that goes on would disturb whatever comes next.
        prctl::set_pdeathsig(Signal::SIGKILL).context("cannot tie the run to its runner")?;
        // It may have died before that.
        if getppid().as_raw() != runner {
            bail!("the runner, process {runner}, is gone");
        }
    }
    // Started through /proc/self/exe, the process would be called "exe" in ps and perf.
    let _ = prctl::set_name(c"ioscope");
    let mut line = serde_json::to_vec(&inside::run(&spec)).context("cannot write the record")?;
    line.push(b'\n');
    std::io::stdout().write_all(&line).context("cannot write the record")?;
    Ok(exit::OK)
}
