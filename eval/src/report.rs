//! Reports of commands, and the record that another run is compared with.

use crate::stats::{BlockSum, Interval};
use kernmill::{Error, Result};
use kernmill_os::files::lead_to_same_file;
use kernmill_os::output::NewFile;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The form of a report.
#[derive(Debug, clap::Args)]
pub struct ReportForm {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The form of a report, and a file for the record.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    #[command(flatten)]
    form: ReportForm,
    /// Write the figures, with those of every window, to this file: `kernmill eval compare` compares two such
    #[arg(long, value_name = "FILE.json")]
    pub out: Option<PathBuf>,
}

/// The end of a command.
#[derive(Debug)]
pub struct Outcome {
    /// The report, for standard output.
    pub report: Told,
    /// Why it failed all the same, such as a limit that was passed.
    pub failed: Option<Error>,
}

/// A report in the form that was asked for.
#[derive(Debug)]
pub enum Told {
    /// For people.
    Text(String),
    /// An object, and the name and version of its schema.
    Json(&'static str, Value),
}

/// A figure that is a sum over a weight, by blocks.
pub struct Metric<'a> {
    /// Name by which two runs' figures are paired.
    pub name: &'a str,
    /// The blocks in the order of the text.
    pub blocks: &'a [BlockSum],
}

impl ReportForm {
    /// The report in the form that was asked for.
    pub fn tell(&self, schema: &'static str, json: Value, lines: String) -> Told {
        if self.json { Told::Json(schema, json) } else { Told::Text(lines) }
    }
}

impl ReportArgs {
    /// Refuses a place for the record as [`check_output`] does.
    ///
    /// # Errors
    /// When it cannot be there.
    pub fn check(&self, read: &[Option<&Path>]) -> Result<()> {
        self.out.as_deref().map_or(Ok(()), |path| check_output(path, read))
    }

    /// Writes the record if one is asked for, and ends with the report.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn end(
        &self,
        schema: &'static str,
        json: Value,
        lines: String,
        metrics: &[Metric<'_>],
    ) -> Result<Outcome> {
        if let Some(path) = &self.out {
            let mut record = json.clone();
            record["schema"] = json!(schema);
            for Metric { name, blocks } in metrics {
                let blocks: Vec<Value> =
                    blocks.iter().map(|block| json!([block.sum, block.weight])).collect();
                record["blocks_of"][*name] = json!(blocks);
            }
            write(path, format!("{record}\n").as_bytes())?;
        }
        Ok(Outcome { report: self.form.tell(schema, json, lines), failed: None })
    }
}

/// Refuses a place for an output, before work is done for it: one where nothing can be written, or of a file
/// that is read.
///
/// # Errors
/// When it is such a place.
pub fn check_output(path: &Path, read: &[Option<&Path>]) -> Result<()> {
    NewFile::check(path).map_err(Error::read(path))?;
    match read.iter().flatten().any(|read| lead_to_same_file(read, path)) {
        true => Err(Error::input(path, "it is read as well: give the output another name")),
        false => Ok(()),
    }
}

/// Writes a whole file.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let file = NewFile::create(path).map_err(Error::read(path))?;
    file.file().write_all(contents).map_err(Error::write(path))?;
    file.finish().map_err(Error::write(path))
}

/// Lines of a report: names and what they have, one below the other.
pub fn figures(title: &str, named: &[(&str, String)]) -> String {
    let width = named.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = named.iter().map(|(name, value)| format!("  {name:width$}  {value}\n"));
    format!("{title}\n{}", lines.collect::<String>())
}

/// A figure with its interval.
pub fn with_interval(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { low, high }) => format!("{} ({} to {})", short(value), short(low), short(high)),
        None => format!("{} (too few blocks for an interval)", short(value)),
    }
}

/// A figure with five digits that count.
pub fn short(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size == 0.0 => "0".to_owned(),
        _ if !(1e-4..1e6).contains(&size) => format!("{value:.4e}"),
        _ => format!("{value:.*}", (4 - libm::log10(size).floor() as i32).clamp(0, 8) as usize),
    }
}

/// An interval as JSON: both ends, or an empty list.
pub fn interval_json(interval: Option<Interval>) -> Value {
    interval.map_or(json!([]), |Interval { low, high }| json!([low, high]))
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn figures_have_five_digits_that_count() {
        let found = [0.0, 1.234567, -0.00123456, 123456.7, 1.5e-5, 1e9].map(short);
        assert_eq!(found, ["0", "1.2346", "-0.0012346", "123457", "1.5000e-5", "1.0000e9"]);
    }
}
