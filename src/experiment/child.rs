//! Each run in a fresh child process of this program: started, watched, and its record collected.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use super::record::Record;
use super::runner::{Executor, Outcome};
use super::signals;
use super::spec::RunSpec;

/// Name of the hidden command that carries out one run.
pub const CHILD_COMMAND: &str = "child";
/// Largest record that is read from a child, in bytes.
const RECORD_MAX_BYTES: u64 = 64 << 20;
/// How much of a child's last words is kept, in bytes.
const STDERR_KEPT_BYTES: usize = 4096;

/// What the runner waits for.
enum Event {
    /// A signal asks the program to stop.
    Signal(i32),
    /// The child with this number has ended.
    Ended(u64),
}

/// Runs each run in a child process.
pub struct ChildExecutor {
    program: PathBuf,
    arguments: Vec<String>,
    timeout: Option<Duration>,
    sender: Sender<Event>,
    events: Receiver<Event>,
    number: u64,
}

impl ChildExecutor {
    /// An executor that starts this very program, even if its file has been replaced since. From now on SIGINT, SIGTERM
    /// and SIGHUP end the run under way and are reported; a second one ends the program.
    pub fn new(timeout: Option<Duration>) -> io::Result<Self> {
        let executor = Self::of_program(PathBuf::from("/proc/self/exe"), vec![CHILD_COMMAND.to_owned()], timeout);
        let sender = executor.sender.clone();
        signals::watch(move |signal| {
            let _ = sender.send(Event::Signal(signal));
        })?;
        Ok(executor)
    }

    /// An executor that starts another program, without a watch over signals.
    fn of_program(program: PathBuf, arguments: Vec<String>, timeout: Option<Duration>) -> Self {
        let (sender, events) = channel();
        ChildExecutor { program, arguments, timeout, sender, events, number: 0 }
    }

    /// Starts the child, hands it its specification and waits for the end.
    fn run_child(&mut self, spec: &RunSpec) -> Result<Ended, Stopped> {
        let failed = |what: &str, error: io::Error| Stopped::Failed(format!("{what}: {error}"));
        let runner_pid = Some(Pid::this().as_raw());
        let input = serde_json::to_vec(&RunSpec { runner_pid, ..spec.clone() })
            .map_err(|e| failed("cannot write the run's specification", e.into()))?;
        let started = Instant::now();
        let mut child = Command::new(&self.program)
            .arg0("ioscope")
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| failed("cannot start a process for the run", e))?;

        let stdin = child.stdin.take();
        // A child that dies early closes its end; its exit tells more than EPIPE here.
        let write = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        self.number += 1;
        self.announce_end(&child);
        let stopped = self.wait_for_end(started);
        if stopped.is_some() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|e| failed("cannot wait for the run's process", e))?;
        let _ = write.join();
        let ended = Ended { status, stdout: joined(stdout), stderr: joined(stderr) };
        match stopped {
            Some(stopped) => Err(stopped),
            None => Ok(ended),
        }
    }

    /// Sends an event when the child has ended. It is not reaped, so that its process id stays its own.
    fn announce_end(&self, child: &Child) {
        let pid = Pid::from_raw(child.id() as i32);
        let (sender, number) = (self.sender.clone(), self.number);
        thread::spawn(move || {
            while waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(nix::Error::EINTR) {}
            let _ = sender.send(Event::Ended(number));
        });
    }

    /// Waits until the child has ended (`None`), or until there is a reason to end it.
    fn wait_for_end(&self, started: Instant) -> Option<Stopped> {
        loop {
            let event = match self.timeout {
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(timeout) => self.events.recv_timeout(timeout.saturating_sub(started.elapsed())),
            };
            match event {
                Ok(Event::Ended(number)) if number == self.number => return None,
                // The end of an earlier child, that was seen otherwise.
                Ok(Event::Ended(_)) => {}
                Ok(Event::Signal(signal)) => return Some(Stopped::Signal(signal)),
                Err(_) => {
                    let after = self.timeout.unwrap_or_default().as_secs_f64();
                    return Some(Stopped::Failed(format!(
                        "the run did not end within {after} s and was killed; --timeout sets another limit"
                    )));
                }
            }
        }
    }
}

/// What a child left behind.
struct Ended {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Why there is no record of a child.
enum Stopped {
    /// A signal asked the program to stop.
    Signal(i32),
    /// The run failed, for this reason.
    Failed(String),
}

impl Executor for ChildExecutor {
    fn execute(&mut self, spec: &RunSpec) -> Outcome {
        if let Some(Event::Signal(signal)) = self.events.try_iter().find(|e| matches!(e, Event::Signal(_))) {
            return Outcome::Interrupted(signal);
        }
        match self.run_child(spec) {
            Ok(ended) => Outcome::Done(Box::new(record_of(ended, spec))),
            Err(Stopped::Signal(signal)) => Outcome::Interrupted(signal),
            Err(Stopped::Failed(why)) => Outcome::Done(Box::new(spec.failed_record(&why))),
        }
    }
}

/// The child's own record, or one that says how the child ended without any.
fn record_of(ended: Ended, spec: &RunSpec) -> Record {
    let words = last_words(&ended.stderr);
    let said = if words.is_empty() { String::new() } else { format!("; it said: {words}") };
    if !ended.status.success() {
        return spec.failed_record(&format!("the run's process {}{said}", describe(ended.status)));
    }
    match serde_json::from_slice::<Record>(&ended.stdout) {
        Ok(record) if (&record.cell, record.run, record.counted) != (&spec.cell, spec.run, spec.counted) => {
            spec.failed_record(&format!("the run's process answered for another run, {} {}", record.cell, record.run))
        }
        Ok(mut record) => {
            if !words.is_empty() {
                record.warnings.push(format!("the run's process wrote to stderr: {words}"));
            }
            record
        }
        Err(error) => spec.failed_record(&format!("the run's process left no record that can be read: {error}{said}")),
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => match Signal::try_from(signal) {
            Ok(signal) => format!("was killed by {signal}"),
            Err(_) => format!("was killed by signal {signal}"),
        },
        (None, Some(code)) => format!("ended with exit code {code}"),
        (None, None) => format!("ended oddly ({status})"),
    }
}

/// The end of what was written to stderr, on one line.
fn last_words(stderr: &[u8]) -> String {
    let kept = &stderr[stderr.len().saturating_sub(STDERR_KEPT_BYTES)..];
    String::from_utf8_lossy(kept).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads a pipe to its end in a thread of its own; what is beyond the limit is read and dropped.
fn collect<R: Read + Send + 'static>(pipe: Option<R>) -> Option<JoinHandle<Vec<u8>>> {
    pipe.map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.by_ref().take(RECORD_MAX_BYTES).read_to_end(&mut bytes);
            let _ = io::copy(&mut pipe, &mut io::sink());
            bytes
        })
    })
}

fn joined(reader: Option<JoinHandle<Vec<u8>>>) -> Vec<u8> {
    reader.and_then(|r| r.join().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::spec::tests::run_spec;

    /// Runs a shell script in the child's place.
    fn shell(script: &str, timeout: Option<Duration>) -> ChildExecutor {
        ChildExecutor::of_program("/bin/sh".into(), vec!["-c".into(), script.into()], timeout)
    }

    fn record(script: &str, timeout: Option<Duration>) -> Record {
        match shell(script, timeout).execute(&run_spec()) {
            Outcome::Done(record) => {
                assert!(record.error.is_none() || record.unexplained().is_empty());
                *record
            }
            Outcome::Interrupted(signal) => unreachable!("signal {signal}"),
        }
    }

    fn error(script: &str, timeout: Option<Duration>) -> String {
        record(script, timeout).error.unwrap()
    }

    #[test]
    fn a_record_is_collected_and_what_was_said_beside_it_is_a_warning() {
        let line = serde_json::to_string(&run_spec().blank_record()).unwrap();
        let record = record(&format!("cat >/dev/null; echo careful >&2; cat <<'END'\n{line}\nEND"), None);
        assert_eq!(record.error, None);
        assert_eq!(record.warnings, ["the run's process wrote to stderr: careful"]);
    }

    #[test]
    fn the_child_reads_its_specification_with_our_process_id() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spec");
        error(&format!("cat > '{}'", file.display()), None);
        let spec: RunSpec = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(spec, RunSpec { runner_pid: Some(Pid::this().as_raw()), ..run_spec() });
    }

    #[test]
    fn a_crash_names_its_signal_and_a_failure_its_code_and_last_words() {
        assert_eq!(error("kill -SEGV $$", None), "the run's process was killed by SIGSEGV");
        assert_eq!(
            error("echo no memory >&2; exit 3", None),
            "the run's process ended with exit code 3; it said: no memory"
        );
        assert!(error("echo hello", None).starts_with("the run's process left no record that can be read"));
        let mut other = run_spec();
        other.run = 7;
        let line = serde_json::to_string(&other.blank_record()).unwrap();
        assert!(error(&format!("cat <<'END'\n{line}\nEND"), None).contains("answered for another run"));
    }

    #[test]
    fn a_hung_child_is_killed() {
        let began = Instant::now();
        // `exec`: a grandchild that outlives the shell would hold the pipes open.
        let error = error("exec sleep 600", Some(Duration::from_millis(100)));
        assert!(error.contains("did not end within 0.1 s and was killed"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_program_that_cannot_be_started_is_a_failed_run() {
        let mut executor = ChildExecutor::of_program("/nowhere/ioscope".into(), Vec::new(), None);
        match executor.execute(&run_spec()) {
            Outcome::Done(record) => assert!(record.error.unwrap().starts_with("cannot start a process for the run")),
            Outcome::Interrupted(_) => unreachable!(),
        }
    }

    #[test]
    fn a_signal_ends_the_run_under_way_and_is_seen_before_the_next() {
        for _ in 0..2 {
            let mut executor = shell("exec sleep 600", None);
            executor.sender.send(Event::Signal(15)).unwrap();
            assert!(matches!(executor.execute(&run_spec()), Outcome::Interrupted(15)));
        }
        let mut executor = shell("exec sleep 600", None);
        let sender = executor.sender.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            sender.send(Event::Signal(2))
        });
        assert!(matches!(executor.execute(&run_spec()), Outcome::Interrupted(2)));
    }
}
