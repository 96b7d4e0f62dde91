//! Processors: from busy time to the cores of another host.

use blockstone_base::csv::{self, Dialect};
use blockstone_base::hint::Hint;
use serde::Serialize;

use super::HardwareError;

/// Throughput of a core with both threads busy, as a multiple of one thread alone.
pub const SMT_FACTOR: f64 = 1.25;

/// A host whose operating system counted busy time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// Mean number of busy processors of the operating system.
    pub busy: f64,
    pub cores: f64,
    pub threads_per_core: f64,
    pub smt_factor: f64,
}

impl Processors {
    /// Returns the equivalent number of fully busy cores.
    ///
    /// Half of the threads busy is not half of the capacity: a core with one busy thread already
    /// does 1 ÷ `smt_factor` of the work that both would.
    pub fn busy_cores(&self) -> Result<f64, HardwareError> {
        super::amount("busy processors", self.busy)?;
        super::positive("cores", self.cores)?;
        let within = |what: &str, value: f64, hint| {
            if (1.0..=8.0).contains(&value) {
                return Ok(());
            }
            Err(HardwareError::Quantity { what: what.to_owned(), value, hint })
        };
        within("threads of a core", self.threads_per_core, "from 1 to 8")?;
        within("the SMT factor", self.smt_factor, "1.25 is usual; never the number of threads")?;
        if self.threads_per_core <= 1.0 {
            return Ok(self.busy.min(self.cores));
        }
        let first = self.busy.min(self.cores);
        let further = (self.busy - self.cores).max(0.0) / (self.threads_per_core - 1.0);
        let work = first + further.min(self.cores) * (self.smt_factor - 1.0);
        Ok(work / self.smt_factor)
    }
}

/// Returns the cores of a target for busy cores of the source. `source` and `target` are the
/// performance of one core of each: visits of cached blocks by `calibrate --cpu` on both, or a
/// published benchmark ÷ cores.
pub fn cores(
    busy_cores: f64,
    source: f64,
    target: f64,
    utilisation: f64,
) -> Result<f64, HardwareError> {
    super::amount("busy cores", busy_cores)?;
    super::positive("what a core of the source does", source)?;
    super::positive("what a core of the target does", target)?;
    super::share("the planned utilisation", utilisation)?;
    Ok(busy_cores * source / target / utilisation)
}

/// A processor to choose from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    pub name: String,
    /// Whole cores that the load takes.
    pub cores: u64,
    pub licences: Option<f64>,
}

/// Compares fewer faster cores with more slower ones: cores, and licences at `factor` per core.
pub fn choices(
    busy_cores: f64,
    source: f64,
    targets: &[(String, f64)],
    utilisation: f64,
    factor: Option<f64>,
) -> Result<Vec<Choice>, HardwareError> {
    let choose = |(name, target): &(String, f64)| {
        let needed = cores(busy_cores, source, *target, utilisation)?;
        let cores = super::units(needed, 1.0);
        let licences = factor.map(|factor| (cores as f64 * factor - 1e-9).ceil());
        Ok(Choice { name: name.clone(), cores, licences })
    };
    targets.iter().map(choose).collect()
}

/// Returns the cores that a driver on the host uses if each I/O costs `cpu_s`: a flash translation
/// layer that runs on the host is paid for in licences of its cores.
pub fn cores_of_io(iops: f64, cpu_s: f64) -> Result<f64, HardwareError> {
    super::amount("IOPS", iops)?;
    super::amount("processor time of an I/O", cpu_s)?;
    Ok(iops * cpu_s)
}

#[derive(Debug, PartialEq, thiserror::Error, Hint)]
#[error("read performance of cores {name}, line {line}: {why}")]
#[hint("lines of name,perf_per_core")]
pub struct PerformanceError {
    pub name: String,
    pub line: usize,
    pub why: String,
}

/// Parses a user's list of `name,performance of a core`. Empty lines and those that begin with `#`
/// are comments; a first line without a number is a heading.
pub fn performances(name: &str, text: &str) -> Result<Vec<(String, f64)>, PerformanceError> {
    const MOST: usize = 100_000;
    let wrong = |line: usize, why: &str| {
        let (name, why) = (name.to_owned(), why.to_owned());
        PerformanceError { name, line, why }
    };
    let mut found = Vec::new();
    let records = csv::records(text, Dialect::Loose).map_err(|(line, why)| wrong(line, why))?;
    for (at, (line, record)) in records.enumerate() {
        if found.len() >= MOST {
            return Err(wrong(line, "too many lines"));
        }
        let fields: Vec<&str> = record.iter().collect();
        // A name without quotes may have commas.
        let Some((value, name)) = fields.split_last().filter(|(_, name)| !name.is_empty()) else {
            return Err(wrong(line, "no comma"));
        };
        match value.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() => found.push((name.join(", "), value)),
            Err(_) if at == 0 => {}
            _ => return Err(wrong(line, "the last column is not a number above zero")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_not_cores() {
        let host = |busy| Processors { busy, cores: 8.0, threads_per_core: 2.0, smt_factor: 1.25 };
        // Half of the threads busy: 80 % of the capacity is used.
        assert_eq!(host(8.0).busy_cores(), Ok(6.4));
        assert_eq!(host(16.0).busy_cores(), Ok(8.0));
        assert_eq!(host(4.0).busy_cores(), Ok(3.2));
        assert_eq!(Processors { threads_per_core: 1.0, ..host(5.0) }.busy_cores(), Ok(5.0));
        assert!(host(f64::NAN).busy_cores().is_err());
        assert!(Processors { smt_factor: 0.5, ..host(1.0) }.busy_cores().is_err());
        assert!(Processors { threads_per_core: 0.0, ..host(1.0) }.busy_cores().is_err());
    }

    #[test]
    fn faster_cores_save_licences() {
        let targets = [("slow".to_owned(), 5.0), ("fast".to_owned(), 10.0)];
        let choices = choices(12.0, 5.0, &targets, 0.75, Some(0.5)).unwrap();
        assert_eq!([choices[0].cores, choices[1].cores], [16, 8]);
        assert_eq!([choices[0].licences, choices[1].licences], [Some(8.0), Some(4.0)]);
        assert!(cores(1.0, 1.0, 0.0, 1.0).is_err());
        assert!((cores_of_io(100_000.0, 10e-6).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_list_of_cores_names_its_bad_line() {
        let good = "processor,per core\n# measured\n\"A, B\",7.5\nC, 10\n";
        let got = performances("cpu.csv", good).unwrap();
        assert_eq!(got, [("A, B".to_owned(), 7.5), ("C".to_owned(), 10.0)]);
        for (bad, line) in [("a,1\nb\n", 2), ("a,1\n\nb,x\n", 3), ("a,-1\n", 1), ("a,NaN", 1)] {
            let error = performances("cpu.csv", bad).unwrap_err();
            assert_eq!(error.line, line, "{bad}");
            assert!(error.told().contains("\nhint: "));
        }
    }
}
