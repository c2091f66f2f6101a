//! Runs an experiment: one run after the other, each record handed on as soon as it is there.

use std::io;

use super::record::Record;
use super::schedule::{PlannedRun, schedule};
use super::spec::{Experiment, RunSpec};

/// Carries out one run. The real one starts a child process; tests use one that does not measure.
pub trait Executor {
    /// Carries out a run; one that fails is a record with its reason.
    fn execute(&mut self, spec: &RunSpec) -> Outcome;
}

/// How the execution of a run ended.
#[derive(Debug)]
pub enum Outcome {
    /// With a record.
    Done(Box<Record>),
    /// A signal asked the program to stop: its number.
    Interrupted(i32),
}

/// Is told how the experiment goes on.
pub trait Observer {
    /// A run starts: its number from 0, and the number of all runs.
    fn starting(&mut self, number: usize, total: usize, spec: &RunSpec);

    /// A run has ended. An error ends the experiment: records that cannot be kept are not worth making.
    fn finished(&mut self, record: &Record) -> io::Result<()>;
}

/// What came of an experiment.
#[derive(Debug)]
pub struct Finished {
    /// The records, in the order in which the runs were made.
    pub records: Vec<Record>,
    /// Number of runs that were planned.
    pub planned: usize,
    /// The signal that ended it early.
    pub interrupted: Option<i32>,
    /// Why the observer could not keep a record.
    pub not_kept: Option<io::Error>,
}

/// Makes all runs of an experiment, in its seeded order.
pub fn run(experiment: &Experiment, executor: &mut dyn Executor, observer: &mut dyn Observer) -> Finished {
    let planned = schedule(&experiment.runs(), experiment.counters, experiment.seed);
    run_these(experiment, &planned, executor, observer)
}

/// Makes some runs of an experiment, in the order given.
pub fn run_these(
    experiment: &Experiment,
    planned: &[PlannedRun],
    executor: &mut dyn Executor,
    observer: &mut dyn Observer,
) -> Finished {
    let mut finished = Finished { records: Vec::new(), planned: planned.len(), interrupted: None, not_kept: None };
    for (number, run) in planned.iter().enumerate() {
        let spec = experiment.run_spec(*run);
        observer.starting(number, planned.len(), &spec);
        match executor.execute(&spec) {
            Outcome::Interrupted(signal) => {
                finished.interrupted = Some(signal);
                break;
            }
            Outcome::Done(record) => {
                let kept = observer.finished(&record);
                finished.records.push(*record);
                if let Err(error) = kept {
                    finished.not_kept = Some(error);
                    break;
                }
            }
        }
    }
    finished
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::spec::tests::experiment;

    /// Answers without measuring; run number `stop_at` meets a signal.
    #[derive(Default)]
    struct Mock {
        ran: Vec<(String, u32, bool)>,
        stop_at: Option<usize>,
    }

    impl Executor for Mock {
        fn execute(&mut self, spec: &RunSpec) -> Outcome {
            if self.stop_at == Some(self.ran.len()) {
                return Outcome::Interrupted(2);
            }
            self.ran.push((spec.cell.clone(), spec.run, spec.counted));
            let failed = spec.cell == "sqlite-uring-w0" && spec.run == 1 && !spec.counted;
            let record = if failed { spec.failed_record("the device is gone") } else { spec.blank_record() };
            Outcome::Done(Box::new(record))
        }
    }

    #[derive(Default)]
    struct Log {
        starts: usize,
        kept: usize,
        full_after: Option<usize>,
    }

    impl Observer for Log {
        fn starting(&mut self, number: usize, total: usize, _: &RunSpec) {
            assert_eq!((number, total), (self.starts, 6));
            self.starts += 1;
        }

        fn finished(&mut self, _: &Record) -> io::Result<()> {
            if self.full_after == Some(self.kept) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.kept += 1;
            Ok(())
        }
    }

    #[test]
    fn a_failed_run_does_not_end_the_rest() {
        let (mut mock, mut log) = (Mock::default(), Log::default());
        let finished = run(&experiment(), &mut mock, &mut log);
        assert_eq!((finished.records.len(), finished.planned, log.kept), (6, 6, 6));
        assert!(finished.interrupted.is_none() && finished.not_kept.is_none());
        let failed: Vec<&Record> = finished.records.iter().filter(|r| r.error.is_some()).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].unexplained(), Vec::<String>::new());
        // The counted round comes first, then two timed ones.
        assert_eq!(
            mock.ran.iter().map(|(_, run, counted)| (*run, *counted)).collect::<Vec<_>>(),
            [(1, true), (1, true), (1, false), (1, false), (2, false), (2, false)]
        );
    }

    #[test]
    fn a_signal_keeps_what_is_done() {
        let (mut mock, mut log) = (Mock { stop_at: Some(3), ..Mock::default() }, Log::default());
        let finished = run(&experiment(), &mut mock, &mut log);
        assert_eq!((finished.records.len(), finished.interrupted, log.kept), (3, Some(2), 3));
    }

    #[test]
    fn a_record_that_cannot_be_kept_ends_the_experiment() {
        let (mut mock, mut log) = (Mock::default(), Log { full_after: Some(1), ..Log::default() });
        let finished = run(&experiment(), &mut mock, &mut log);
        assert_eq!(finished.records.len(), 2);
        assert!(finished.not_kept.is_some());
    }
}
