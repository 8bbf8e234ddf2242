//! Running a stage that waits for the one before it.

use crate::error::{Error, Result};
use crate::model::Prepared;
use crate::options::Options;
use crate::stage::{Stage, StagePosition};
use kernmill_runtime::stages::{StageServer, StageServerConfig};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

impl Stage {
    /// Waits at `address` for the stage before this one and runs its layers, until Ctrl-C or SIGTERM.
    /// `greet` is told where it waits.
    ///
    /// # Errors
    /// When memory is short, the address cannot be had, or weights cannot be read or used.
    pub fn serve(
        &self,
        prepared: Prepared,
        options: &Options,
        address: SocketAddr,
        greet: impl Fn(&str),
    ) -> Result<()> {
        options.check_stage()?;
        let StagePosition { number, stages } = self.place;
        let share = self.share(prepared.program())?;
        let image = prepared.into_image(options)?;
        let (peer, key, pool) = (self.peer.clone(), self.key.clone(), options.pool());
        let server = StageServer::new(image, StageServerConfig { number, stages, peer, key, pool })?;
        let failed = |error: std::io::Error| Error::failed(format!("{address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        let has_ended = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, has_ended.clone()).map_err(failed)?;
        }
        greet(&format!(
            "stage {number} of {stages} (attention layers {} to {}, {:.0} % of the weights) waits at {}",
            share.layers.start,
            share.layers.end - 1,
            100.0 * share.weights,
            listener.local_addr().map_err(failed)?
        ));
        Ok(server.run(listener, &has_ended)?)
    }
}
