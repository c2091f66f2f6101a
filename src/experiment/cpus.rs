//! Lists of CPUs as `taskset -c` writes them, and the confinement of this process to one.

use std::fmt;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// A set of CPUs that is not empty, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(Vec<usize>);

/// Why a list of CPUs is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// Not a list.
    #[error("'{0}' is not a list of CPUs; write it as 0, 0-3, 0,2 or 0-6:2")]
    Syntax(String),
    /// A number that no kernel has.
    #[error("CPU {0} is beyond the {max} that a CPU set holds", max = CpuSet::count())]
    Range(usize),
    /// CPUs that this process may not use.
    #[error("CPU {cpus} cannot be used; this process may run on {allowed}")]
    NotAllowed {
        /// The CPUs asked for in vain.
        cpus: String,
        /// The CPUs that are allowed.
        allowed: String,
    },
    /// The kernel refused.
    #[error("cannot confine this process to CPU {cpus}: {source}")]
    Confine {
        /// The CPUs.
        cpus: String,
        /// Its answer.
        source: nix::Error,
    },
}

impl CpuList {
    /// The CPU that a poller is bound to: the last one. With one CPU it shares it with the application.
    pub fn last(&self) -> u32 {
        self.0.last().map_or(0, |&cpu| cpu as u32)
    }

    /// The CPUs, ascending.
    pub fn cpus(&self) -> &[usize] {
        &self.0
    }

    /// Checks that this process may run on each of the CPUs.
    pub fn check_allowed(&self) -> Result<(), CpuListError> {
        let allowed = allowed().map_err(|source| CpuListError::Confine { cpus: self.to_string(), source })?;
        let missing: Vec<usize> = self.0.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(CpuListError::NotAllowed { cpus: CpuList(missing).to_string(), allowed: CpuList(allowed).to_string() })
    }

    /// Confines the calling thread, and with it every thread that it starts later, to the list.
    pub fn confine(&self) -> Result<(), CpuListError> {
        let fail = |source| CpuListError::Confine { cpus: self.to_string(), source };
        let mut set = CpuSet::new();
        for &cpu in &self.0 {
            set.set(cpu).map_err(fail)?;
        }
        sched_setaffinity(Pid::from_raw(0), &set).map_err(fail)
    }
}

/// CPUs that the calling thread may run on, as a list like `0-1`.
pub fn allowed_list() -> Result<String, nix::Error> {
    Ok(CpuList(allowed()?).to_string())
}

fn allowed() -> Result<Vec<usize>, nix::Error> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let syntax = || CpuListError::Syntax(text.to_owned());
        let number = |t: &str| -> Result<usize, CpuListError> {
            // `parse` would take a sign.
            if t.is_empty() || !t.bytes().all(|b| b.is_ascii_digit()) {
                return Err(syntax());
            }
            let cpu = t.parse().map_err(|_| syntax())?;
            if cpu >= CpuSet::count() { Err(CpuListError::Range(cpu)) } else { Ok(cpu) }
        };
        let mut cpus = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (range, stride) = match part.split_once(':') {
                Some((range, stride)) => (range, number(stride)?),
                None => (part, 1),
            };
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            if stride == 0 || last < first {
                return Err(syntax());
            }
            cpus.extend((first..=last).step_by(stride));
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(CpuList(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut separator = "";
        while let Some(&first) = rest.first() {
            let run = rest.iter().enumerate().take_while(|&(i, &cpu)| cpu == first + i).count();
            f.write_str(separator)?;
            match run {
                1 => write!(f, "{first}")?,
                _ => write!(f, "{first}-{}", first + run - 1)?,
            }
            separator = ",";
            rest = &rest[run..];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_read_as_taskset_reads_them() {
        let read = |t: &str| t.parse::<CpuList>().map(|l| l.0);
        assert_eq!(read("0").unwrap(), [0]);
        assert_eq!(read("3,0-1").unwrap(), [0, 1, 3]);
        assert_eq!(read("0-6:2").unwrap(), [0, 2, 4, 6]);
        for bad in ["", ",", "a", "1-", "-1", "3-1", "0-4:0", "1.5", "0;1", "+1"] {
            assert_eq!(read(bad), Err(CpuListError::Syntax(bad.to_owned())), "{bad}");
        }
        assert!(matches!(read("99999"), Err(CpuListError::Range(99999))));
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named() {
        let last = CpuSet::count() - 1;
        if allowed().unwrap().contains(&last) {
            crate::skipped!("a_cpu_that_is_not_there_is_named: this machine has CPU {last}");
            return;
        }
        let error = format!("{last}").parse::<CpuList>().unwrap().check_allowed().unwrap_err().to_string();
        assert!(error.starts_with(&format!("CPU {last} cannot be used; this process may run on ")), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(cpus in proptest::collection::btree_set(0usize..1024, 1..40)) {
            let list = CpuList(cpus.into_iter().collect());
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn any_text_is_answered(text in ".{0,20}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
