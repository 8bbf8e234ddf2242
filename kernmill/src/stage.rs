//! One model in several processes: each runs a stage, which is a part of the layers.
//!
//! The first stage is served as a whole model is, with [`crate::Options::stage`]; the others run by
//! [`Stage::serve`]. `docs/user/scaling.md` says when that is worth it.

use crate::error::{Error, Result};
use kernmill_plan::program::Program;
use kernmill_runtime::CutError;
use kernmill_runtime::stages::{KeyError, StageError, StageKey, StageShare, StagesConfig};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::str::FromStr;

/// Stages at most.
const MOST: u32 = 64;

/// Which stage of how many, written as `1/2`.
///
/// ```
/// let place: kernmill::stage::StagePosition = "2/3".parse().unwrap();
/// assert_eq!((place.number, place.stages), (2, 3));
/// let error = "3/2".parse::<kernmill::stage::StagePosition>().unwrap_err();
/// assert_eq!(error, "expected a stage and how many there are, 1/2 to 64/64");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagePosition {
    /// The stage, counted from 1.
    pub number: u32,
    /// How many there are.
    pub stages: u32,
}

impl FromStr for StagePosition {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<StagePosition, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(number, stages)| Some((number.parse().ok()?, stages.parse().ok()?)));
        match numbers {
            Some((number, stages)) if (2..=MOST).contains(&stages) && (1..=stages).contains(&number) => {
                Ok(StagePosition { number, stages })
            }
            _ => Err(format!("expected a stage and how many there are, 1/2 to {MOST}/{MOST}")),
        }
    }
}

/// A stage of a model, and how it finds the next one.
#[derive(Clone, Debug)]
pub struct Stage {
    pub(crate) place: StagePosition,
    pub(crate) peer: Option<String>,
    pub(crate) key: StageKey,
}

impl Stage {
    /// The stage at `place`, whose next one is at `peer` (`HOST:PORT`), and which shares the secret in the
    /// file `key` with it. `host` is the address at which the process listens.
    ///
    /// # Errors
    /// When the address or the key is missing where it is needed, or the file of the key is wrong.
    pub fn new(
        place: StagePosition,
        peer: Option<String>,
        key: Option<&Path>,
        host: IpAddr,
    ) -> Result<Stage> {
        let key = key.map_or_else(|| Ok(StageKey::none()), StageKey::read)?;
        if place.number < place.stages && peer.is_none() {
            return Err(Error::bad_input(format!(
                "--stage {}/{} needs --peer HOST:PORT, the address of stage {}",
                place.number,
                place.stages,
                place.number + 1
            )));
        }
        if place.number > 1 && !host.is_loopback() && !key.is_secret() {
            return Err(Error::bad_input(format!(
                "--host {host} lets other machines use this stage: give all stages the same secret by --stage-key FILE"
            )));
        }
        Ok(Stage { place, peer, key })
    }

    /// The settings of the stages behind the first one, for the runtime.
    pub(crate) fn config(&self) -> StagesConfig {
        let peer = self.peer.clone().unwrap_or_default();
        StagesConfig { stages: self.place.stages, peer, key: self.key.clone() }
    }

    /// The part of a program that the stage holds.
    ///
    /// # Errors
    /// When the program cannot be cut into so many stages.
    pub(crate) fn share(&self, program: &Program) -> Result<StageShare> {
        Ok(StageShare::of(program, self.place.number, self.place.stages)?)
    }
}

/// The address that `host` names: itself, or one of those of a machine's name. The older kind of address goes
/// before the newer one, as clients that are given a name try it.
///
/// # Errors
/// When the system knows no such name.
pub fn address(host: &str) -> std::result::Result<IpAddr, String> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let found = (host, 0).to_socket_addrs().map_err(|error| format!("no address has this name: {error}"))?;
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    let older = found.iter().find(|address| address.is_ipv4()).or(found.first());
    older.copied().ok_or_else(|| "no address has this name".to_owned())
}

impl From<CutError> for Error {
    fn from(error: CutError) -> Error {
        Error::bad_input(error.to_string())
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Error {
        Error::bad_input(format!("--stage-key: {error}"))
    }
}

impl From<StageError> for Error {
    fn from(error: StageError) -> Error {
        match error {
            StageError::Io(_) => Error::failed(error.to_string()),
            _ => Error::bad_input(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name_of_one() {
        assert_eq!(address("::1").unwrap().to_string(), "::1");
        assert!(address("localhost").unwrap().is_loopback());
        assert!(address("no host").unwrap_err().contains("no address has this name"));
    }
}
